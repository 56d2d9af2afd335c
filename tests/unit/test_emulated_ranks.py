"""Emulated ranks send what real ones would, when they would: benchmarks that ask how late a span comes stand on it."""

import pytest

from dashboard.bench.emulated_ranks import FLUSH_SECONDS, flushes, steps_in, zero_frame
from dashboard.bench.synthetic import Shape
from trainer.trace import checksum
from trainer.trace.frame import decode

SHAPE = Shape(copies=2, stages=4)


@pytest.mark.parametrize("rate", [2_000.0, 40_000.0])
def test_every_span_leaves_with_its_ranks_next_flush_and_none_before_it_ended(rate):
    steps = steps_in(SHAPE, rate, 3)
    made = list(flushes(SHAPE, rate, steps))
    assert [flush.due_seconds for flush in made] == sorted(flush.due_seconds for flush in made)
    last = {rank: (1 if rank == 0 else 0, 0, 0, False) for rank in range(SHAPE.ranks)}
    for flush in made:
        frame = decode(flush.frame)
        ends = frame.spans["start_ns"] + frame.spans["duration_ns"]
        waited_ns = flush.due_seconds * 1e9 - ends
        assert (waited_ns >= 0).all() and (waited_ns <= FLUSH_SECONDS * 1e9 + 1).all()
        sequence, spans, total, is_final = last[frame.rank]
        total = checksum.added(total, checksum.total(frame.spans))
        assert (frame.sequence, frame.spans_before, frame.checksum) == (sequence + 1, spans, total) and not is_final
        last[frame.rank] = (frame.sequence, spans + len(ends), total, frame.final)
    recorded = sum(spans for _, spans, _, _ in last.values())
    assert recorded == steps * SHAPE.spans_a_step
    assert all(is_final for *_, is_final in last.values())
    assert recorded / made[-1].due_seconds == pytest.approx(rate, rel=0.05)


def test_the_first_frame_tells_when_the_runs_clock_showed_zero():
    frame = decode(zero_frame(1_780_000_000_000_000_123))
    assert (frame.rank, frame.sequence, len(frame.spans["kind"])) == (0, 1, 0)
    assert [frame.strings[frame.marks[name][0]] for name in ("kind", "text")] == ["zero", "1780000000000000123"]
