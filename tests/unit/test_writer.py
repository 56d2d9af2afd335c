"""The writer loses no span, whatever its sink does, and never disturbs the thread that appends."""

import os
import threading
import time

import pytest

from tests.stack.recorder_stack import until
from tests.unit.baskets import ZERO_NS, Basket, bytes_of, row
from trainer.trace import outbox as outbox_module
from trainer.trace.frame import decode
from trainer.trace.outbox import Outbox
from trainer.trace.row import MOST_ROWS
from trainer.trace.sinks import FileSink, read_frames, resend_spill
from trainer.trace.writer import Writer


@pytest.fixture
def spill(tmp_path):
    return tmp_path / "spill" / "rank-0.frames"


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(outbox_module, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(outbox_module, "LONGEST_PAUSE_SECONDS", 0.005)


def test_a_flush_sends_what_was_added_without_being_asked(spill):
    basket = Basket()
    writer = Writer(0, basket, spill, flush_ms=5, zero_ns=ZERO_NS)
    writer.add(*row(0))
    assert basket.took.wait(5)
    writer.close(5)
    assert basket.steps == [0]


def test_what_is_recorded_during_a_flush_waits_for_the_next(spill):
    """A frame for each few spans that come meanwhile would keep the lock of Python from the thread that appends."""

    class Slow(Basket):
        def send(self, frame):
            super().send(frame)
            if len(self.frames) < 20:
                writer.add(*row(len(self.frames)))

    basket = Slow()
    writer = Writer(0, basket, spill, flush_ms=3_600_000, zero_ns=ZERO_NS)
    writer.add(*row(0))
    writer._flush()
    assert basket.steps == [0]
    writer._flush()
    assert basket.steps == [0, 1]
    for step in range(MOST_ROWS + 1):
        writer.add(*row(step))
    writer._flush()
    assert [len(frame.spans["step"]) for frame in basket.frames[2:]] == [MOST_ROWS, 3]
    writer.close(5)


def test_every_span_of_several_threads_arrives_once_and_numbers_count_up_by_one(spill):
    basket = Basket()
    writer = Writer(3, basket, spill, flush_ms=1, zero_ns=ZERO_NS)

    def work(first):
        for step in range(first, first + 20_000):
            writer.add(*row(step))

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 20_000, 40_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    writer.close(30)
    assert sorted(basket.steps) == list(range(60_000))
    assert basket.numbers == list(range(1, len(basket.frames) + 1))
    assert max(len(frame.spans["kind"]) for frame in basket.frames) <= MOST_ROWS
    before = 0
    for frame in basket.frames:
        assert frame.spans_before == before and frame.rank == 3
        before += len(frame.spans["kind"])
    assert [frame.final for frame in basket.frames] == [False] * (len(basket.frames) - 1) + [True]


def test_nothing_is_sent_before_the_zero_is_known(spill):
    basket = Basket()
    writer = Writer(0, basket, spill, flush_ms=1)
    writer.add(*row(0, start_ns=ZERO_NS + 5))
    assert not basket.took.wait(0.05)
    writer.set_zero(ZERO_NS)
    assert basket.took.wait(5)
    writer.close(5)
    assert basket.frames[0].spans["start_ns"].tolist() == [5.0]


def test_a_rank_that_ends_before_the_zero_is_known_still_sends_with_small_times(spill):
    basket = Basket()
    writer = Writer(0, basket, spill, flush_ms=10_000)
    writer.mark("realtime", "granted")
    writer.close(5)
    assert 0 <= basket.frames[0].marks["time_ns"][0] < 1e9


def spilled_steps(spill):
    """Of every span that lies on disk, in its order."""
    return [step for data, _ in read_frames(spill) for step in decode(data).spans["step"].tolist()]


def test_while_the_sink_is_away_frames_lie_on_disk_and_leave_in_order_when_it_is_back(spill):
    basket = Basket()
    basket.is_away = True
    writer = Writer(0, basket, spill, flush_ms=1, zero_ns=ZERO_NS)
    for part in range(10):
        for step in range(20 * part, 20 * part + 20):
            writer.add(*row(step))
        until("they lie on disk", lambda part=part: len(spilled_steps(spill)) == 20 * part + 20, seconds=5)
    assert spilled_steps(spill) == list(range(200)) and len(list(read_frames(spill))) >= 10
    basket.is_away = False
    writer.close(5)
    assert basket.steps == list(range(200))
    assert basket.numbers == list(range(1, len(basket.frames) + 1))
    assert not spill.exists()


def test_a_frame_that_may_have_arrived_is_sent_again_under_the_same_number(spill):
    basket = Basket()
    basket.is_unsure = True
    box = Outbox(basket, spill)
    frame = bytes_of(1)
    box.put(frame, 1)
    assert basket.numbers == [1]
    assert box.drain(anyway=True)
    box.put(bytes_of(2), 1)
    assert basket.numbers == [1, 1, 2]


def test_a_writer_that_closes_while_the_sink_is_away_leaves_everything_in_the_spill_file(spill):
    basket = Basket()
    basket.is_away = True
    writer = Writer(0, basket, spill, flush_ms=1, zero_ns=ZERO_NS)
    for step in range(5_000):
        writer.add(*row(step))
    began = time.monotonic()
    writer.close(0.2)
    assert time.monotonic() - began < 20, "it does not wait for the sink"
    frames = [decode(frame) for frame, _ in read_frames(spill)]
    assert [step for frame in frames for step in frame.spans["step"].tolist()] == list(range(5_000))
    assert frames[-1].final

    basket.is_away = False
    assert resend_spill(spill, basket) == len(frames)
    assert basket.steps == list(range(5_000)) and not spill.exists()


def test_what_the_disk_refuses_waits_in_memory_and_is_dropped_and_counted_beyond_its_bound(spill):
    spill.parent.parent.joinpath("spill").write_text("a file where the folder should be")
    basket = Basket()
    basket.is_away = True
    size = len(bytes_of(1))
    box = Outbox(basket, spill, memory_bytes=3 * size)
    for sequence in range(1, 6):
        box.put(bytes_of(sequence), 1)
    assert box.spans_dropped == 2
    basket.is_away = False
    assert box.drain(anyway=True)
    assert basket.numbers == [3, 4, 5]


def test_a_full_spill_file_is_left_as_it_is_and_the_rest_goes_to_memory(spill):
    basket = Basket()
    basket.is_away = True
    size = len(bytes_of(1))
    box = Outbox(basket, spill, memory_bytes=2 * size, spill_bytes=2 * size)
    for sequence in range(1, 6):
        box.put(bytes_of(sequence), 1)
    assert box.spans_dropped == 1 and spill.stat().st_size == 2 * size
    basket.is_away = False
    assert box.drain(anyway=True)
    assert basket.numbers == [1, 2, 4, 5] and box.is_empty


def test_dropped_spans_are_told_in_the_next_frame(spill):
    basket = Basket()
    writer = Writer(0, basket, spill, flush_ms=10_000, zero_ns=ZERO_NS)
    writer._outbox.spans_dropped = 7
    writer.close(5)
    assert basket.frames[-1].spans_dropped == 7


@pytest.mark.parametrize("bad", [
    (99, 1, 2, 0, 0, 0, -1, -1, -1, "", ""), (1, 2, 1, 0, 0, 0, -1, -1, -1, "", ""), (1, "x", 2, 0, 0, 0, -1, -1, -1, "", ""),
    (1, 1, 2, 2**40, 0, 0, -1, -1, -1, "", ""), (1, 1, 2, 0, 0, 0, -1, -1, -1, None, ""), (1, 1), (),
])
def test_a_row_that_cannot_be_written_is_counted_and_the_others_go(spill, bad):
    basket = Basket()
    writer = Writer(0, basket, spill, flush_ms=10_000, zero_ns=ZERO_NS)
    writer.add(*row(0))
    writer.add(*bad)
    writer.add(*row(1))
    writer.close(5)
    (frame,) = basket.frames
    assert frame.spans["step"].tolist() == [0, 1] and frame.spans_dropped == 1


def test_a_sink_that_fails_in_an_unknown_way_does_not_end_the_thread(spill):
    class Odd(Basket):
        has_failed = threading.Event()

        def send(self, frame):
            if not self.has_failed.is_set():
                self.has_failed.set()
                raise RuntimeError("something nobody thought of")
            super().send(frame)

    odd = Odd()
    writer = Writer(0, odd, spill, flush_ms=1, zero_ns=ZERO_NS)
    writer.add(*row(0))
    assert odd.has_failed.wait(5)
    writer.add(*row(1))
    writer.close(5)
    assert odd.steps == [0, 1]


def test_a_forked_child_sends_nothing_of_its_parents(spill, tmp_path):
    sink = FileSink(tmp_path / "out.frames")
    writer = Writer(0, sink, spill, flush_ms=10_000, zero_ns=ZERO_NS)
    writer.add(*row(0))
    child = os.fork()
    if child == 0:
        writer.close(1)
        os._exit(threading.active_count() - 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not list(read_frames(tmp_path / "out.frames"))
    writer.close(5)
    assert len(list(read_frames(tmp_path / "out.frames"))) == 1
