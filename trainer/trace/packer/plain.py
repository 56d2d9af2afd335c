"""The packer in Python alone: rows in a list, which become columns when they are taken."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from trainer.trace import checksum, columns
from trainer.trace.columns import Strings, Times
from trainer.trace.frame import NONE, laid_out_spans
from trainer.trace.row import MOST_ROWS, Row, Rows, Taken
from trainer.trace.steady_clock import THIS_CLOCK, SteadyClock


class Packer:
    def __init__(self) -> None:
        self.rows = Rows()
        self.add = self.rows.add

    def tracepoint(self, kind: int, name: str, group: str = "", *, micro_batch: int = NONE, stage: int = NONE, peer: int = NONE,
                   size_bytes: int = NONE) -> Tracepoint:
        return Tracepoint(self.rows, kind, micro_batch, stage, peer, size_bytes, name, group)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, clock: SteadyClock, zero_ns: int) -> Taken:
        count = min(len(self.rows), MOST_ROWS)
        rows = self.rows[:count]
        del self.rows[:count]  # the front, which no append can fall into
        try:
            return _taken(rows, clock, zero_ns)
        except (TypeError, ValueError, OverflowError):
            good = [row for row in rows if complaint(row) is None]
            bad = [row for row in rows if complaint(row) is not None]
            return replace(_taken(good, clock, zero_ns), refused=bad)


class Tracepoint:
    def __init__(self, rows: Rows, kind: int, micro_batch: int, stage: int, peer: int, size_bytes: int, name: str, group: str):
        self._append: Callable[[Any], None] = rows.append
        self._kind, self._rest = kind, (micro_batch, stage, peer, size_bytes, NONE, name, group)
        self._start_ns: int | None = None

    def start(self) -> None:
        self._start_ns = time.monotonic_ns()

    def end(self, step: int) -> None:
        end_ns, start_ns, self._start_ns = time.monotonic_ns(), self._start_ns, None
        self._append((self._kind, start_ns, end_ns, step, *self._rest))  # without a start it is refused

    def between(self, start_ns: int, end_ns: int, step: int) -> None:
        self._append((self._kind, start_ns, end_ns, step, *self._rest))


def complaint(row: Row) -> str | None:
    """Why no frame can hold a row, if that is so."""
    try:
        _taken([row], THIS_CLOCK, 0)
    except (TypeError, ValueError, OverflowError) as error:
        return str(error)
    return None


def _taken(rows: Sequence[Row], clock: SteadyClock, zero_ns: int) -> Taken:
    def on_run(local_ns: Times) -> Times:
        return clock.all_to_other(local_ns) - zero_ns

    strings = Strings()
    spans = columns.spans(rows, strings, on_run)
    return Taken(len(spans["kind"]), laid_out_spans(spans), checksum.total(spans), strings.table, [])
