"""Whatever this machine's clock shows, what the writer sends is on the run's."""

from tests.unit.frames import spans_of
from trainer.trace.clock_line import Line
from trainer.trace.frame import decode
from trainer.trace.kinds import Kind, Lane
from trainer.trace.sinks import FileSink, read_frames
from trainer.trace.steady_clock import SteadyClock
from trainer.trace.writer import Writer

ZERO_NS = 1_000_000


def frames_in(path):
    return [decode(data) for data, _ in read_frames(path)]


def test_times_are_on_the_runs_clock(tmp_path):
    writer = Writer(0, FileSink(tmp_path / "frames"), tmp_path / "spill", flush_ms=10_000)
    writer.set_clock(SteadyClock.of(Line(at_ns=0, offset_ns=-500, uncertainty_ns=20.0)))
    writer.set_zero(ZERO_NS)
    writer.add(Kind.SEND, ZERO_NS + 600, ZERO_NS + 900, 1, 2, 3, 1, 4096, 5, "F2 →", "pp")
    writer.counter("loss", 2.5, step=1, at_ns=ZERO_NS + 700)
    writer.mark("zero", "123", at_ns=ZERO_NS + 500)
    writer.close(5)
    (frame,) = frames_in(tmp_path / "frames")
    assert spans_of(frame) == [(0, 100.0, 300.0, 4096.0, 1, 5, 1, 2, 3, Kind.SEND, Lane.POINT_TO_POINT, "F2 →", "pp")]
    assert frame.counters["time_ns"].tolist() == [200.0] and frame.counters["value"].tolist() == [2.5]
    assert frame.marks["time_ns"].tolist() == [0.0] and frame.strings[frame.marks["text"][0]] == "123"
    assert (frame.clock_offset_ns, frame.clock_uncertainty_ns) == (-500.0, 20.0)


def test_a_clock_that_drifts_is_put_right_at_both_ends_of_a_span(tmp_path):
    writer = Writer(0, FileSink(tmp_path / "frames"), tmp_path / "spill", flush_ms=10_000)
    line = Line(at_ns=ZERO_NS, offset_ns=7, drift=50e-6, uncertainty_ns=20.0, drift_uncertainty=1e-6)
    writer.set_clock(SteadyClock.of(line))
    writer.set_zero(ZERO_NS)
    start_ns, end_ns = ZERO_NS + 1_000_000_000, ZERO_NS + 3_000_000_000
    writer.add(Kind.ALL_REDUCE, start_ns, end_ns, 1, 2, 3, 1, 4096, 5, "", "dp")
    writer.counter("loss", 2.5, step=1, at_ns=end_ns)
    writer.close(5)
    (frame,) = frames_in(tmp_path / "frames")
    assert frame.spans["start_ns"].tolist() == [1_000_050_007.0]
    assert frame.spans["duration_ns"].tolist() == [2_000_100_000.0]
    assert frame.counters["time_ns"].tolist() == [3_000_150_007.0]
    assert frame.clock_uncertainty_ns > 20.0  # the line has aged since ZERO_NS
