"""The writer of one rank: the training thread adds, a thread in the background sends. The hot path is `trainer.trace.packer`."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from trainer.trace import checksum, columns
from trainer.trace.columns import CounterRow, MarkRow, OnRun, Strings, Times
from trainer.trace.frame import NONE, Columns, Frame, encode_around
from trainer.trace.outbox import Outbox
from trainer.trace.packer import new_packer
from trainer.trace.packer.plain import complaint
from trainer.trace.row import MOST_ROWS, Add, NewTracepoint, Row
from trainer.trace.sinks import Sink
from trainer.trace.steady_clock import THIS_CLOCK, SteadyClock

log = logging.getLogger(__name__)



class Writer:
    """Frames of `rank` to `sink`, every `flush_ms`, of at most MOST_ROWS spans each.

    Times are given as `time.monotonic_ns()` of this machine. As long as the run's zero is not known
    nothing is sent: give `zero_ns`, or `set_clock` and then `set_zero` once they are measured.

    A rank that takes another's place goes on after its `written` frames and spans. `note` gets both numbers before a
    frame leaves.
    """

    add: Add
    tracepoint: NewTracepoint

    def __init__(self, rank: int, sink: Sink, spill: Path, flush_ms: float = 100, zero_ns: int = 0,
                 written: tuple[int, int] = (0, 0), note: Callable[[int, int], None] = lambda frames, spans: None):
        self.rank = rank
        self._packer = new_packer()
        self._counters: list[CounterRow] = []
        self._marks: list[MarkRow] = []
        self.add, self.tracepoint = self._packer.add, self._packer.tracepoint
        self._clock = THIS_CLOCK
        self._zero_ns = zero_ns
        self._zero_known = threading.Event()
        if zero_ns:
            self._zero_known.set()
        self._began_ns = time.monotonic_ns()
        self._outbox = Outbox(sink, spill)
        self._sequence, self._spans_recorded = written
        self._note = note
        self._spans_unfit = 0
        self._checksum = 0
        self._flush_seconds = flush_ms / 1000
        self._closing = threading.Event()
        self._is_final = True
        self._flushed = threading.Event()
        self._close_by = 0.0
        self._process = os.getpid()
        self.thread_name = f"trace-writer-{rank}"
        self._thread = threading.Thread(target=self._work, name=self.thread_name, daemon=True)
        self._thread.start()

    def counter(self, name: str, value: float, step: int = NONE, at_ns: int | None = None) -> None:
        self._counters.append((name, value, step, time.monotonic_ns() if at_ns is None else at_ns))

    def mark(self, kind: str, text: str, step: int = NONE, at_ns: int | None = None) -> None:
        self._marks.append((kind, text, step, time.monotonic_ns() if at_ns is None else at_ns))

    def set_zero(self, zero_ns: int) -> None:
        """Where the run's clock is 0, in rank 0's `time.monotonic_ns()`."""
        self._zero_ns = zero_ns
        self._zero_known.set()

    def set_clock(self, clock: SteadyClock) -> None:
        """From this machine's clock to rank 0's, and by how much that may be wrong."""
        self._clock = clock

    def flush(self, deadline_seconds: float = 2.0) -> None:
        """Return once all that was recorded before has left, or is kept for later, or the deadline has passed."""
        for _ in range(2):  # the first to end may have begun before
            self._flushed.clear()
            self._flushed.wait(deadline_seconds / 2)

    def close(self, deadline_seconds: float = 5.0, final: bool = True) -> None:
        """Send the rest and a last frame; what cannot be sent by then lies in the spill file. Whoever calls again waits too.

        `final` says that no other will take this rank's place and go on.
        """
        if os.getpid() != self._process:
            return  # a forked child has no thread, and its parent's spans are not its own
        if not self._closing.is_set():
            self._close_by, self._is_final = time.monotonic() + deadline_seconds, final
            self._closing.set()
        self._thread.join(deadline_seconds + 3)  # a send in flight ends by its socket's time-out
        if self._thread.is_alive():
            log.error("rank %s: the writer did not end within %.1f s", self.rank, deadline_seconds + 3)

    def _work(self) -> None:
        while not self._closing.wait(self._flush_seconds):
            try:
                self._flush()
            except Exception:  # whatever it is, the job goes on and later spans are still sent
                log.exception("rank %s: a flush failed", self.rank)
            self._flushed.set()
        try:
            self._finish()
        except Exception:
            log.exception("rank %s: the last flush failed", self.rank)

    def _flush(self) -> None:
        """All that was recorded by now: what comes meanwhile waits for the next, so that frames do not get small."""
        if self._zero_known.is_set():
            for _ in range(0, self._waiting(), MOST_ROWS):
                self._put(final=False)
            self._outbox.drain()

    def _waiting(self) -> int:
        return max(len(self._packer), len(self._counters), len(self._marks))

    def _finish(self) -> None:
        if not self._zero_known.is_set():
            self.set_zero(self._clock.to_other(self._began_ns))
        try:
            while self._waiting() > MOST_ROWS:
                self._put(final=False)
            self._put(final=self._is_final)
            while not self._outbox.drain(anyway=True) and time.monotonic() < self._close_by:
                time.sleep(min(0.1, max(0.0, self._close_by - time.monotonic())))
        finally:
            self._outbox.spill_all()

    def _put(self, final: bool) -> None:
        """Take the front of what was appended and put it into the outbox as one frame."""
        clock, now_ns = self._clock, time.monotonic_ns()

        def on_run(local_ns: Times) -> Times:
            return clock.all_to_other(local_ns) - self._zero_ns

        taken = self._packer.take(clock, self._zero_ns)
        self._note_refused(taken.refused)
        strings, before = Strings(taken.texts), self._spans_recorded
        self._spans_recorded += taken.count + len(taken.refused)
        self._checksum = checksum.added(self._checksum, taken.checksum)
        frame = Frame(
            rank=self.rank,
            sequence=self._sequence + 1,
            spans={},
            counters=self._convert(_take(self._counters), columns.counters, strings, on_run),
            marks=self._convert(_take(self._marks), columns.marks, strings, on_run),
            strings=strings.table,
            spans_before=before,
            spans_dropped=self._outbox.spans_dropped + self._spans_unfit,
            clock_offset_ns=clock.offset_at(now_ns),
            clock_uncertainty_ns=clock.uncertainty_at(now_ns),
            written_ns=clock.to_other(now_ns) - self._zero_ns,
            final=final,
            checksum=self._checksum,
        )
        data = encode_around(frame, taken.count, taken.laid_out)
        self._sequence += 1
        self._note(self._sequence, self._spans_recorded)
        self._outbox.put(data, taken.count)

    def _note_refused(self, rows: list[Row]) -> None:
        if rows:
            self._spans_unfit += len(rows)
            log.error("rank %s: %s spans cannot be written, the first since %s", self.rank, len(rows), complaint(rows[0]))

    def _convert(
        self, rows: list[Any], convert: Callable[[Sequence[Any], Strings, OnRun], Columns], strings: Strings, on_run: OnRun
    ) -> Columns:
        """The columns of the rows that can be written."""
        try:
            return convert(rows, strings, on_run)
        except (TypeError, ValueError, OverflowError) as error:
            good = columns.fitting(rows, convert)
            log.error("rank %s: %s of %s rows cannot be written: %s", self.rank, len(rows) - len(good), len(rows), error)
            return convert(good, strings, on_run)


def _take(rows: list[Any]) -> list[Any]:
    """The front of a list that another thread appends to, at most a frame's worth, removed from it."""
    count = min(len(rows), MOST_ROWS)
    front = rows[:count]
    del rows[:count]
    return front
