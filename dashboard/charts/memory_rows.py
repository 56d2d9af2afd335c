"""What one rank said of its memory lately."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dashboard.charts.recent import recent_frames
from dashboard.runs.models import Run
from trainer.trace.frame import Frame

STEPS = 3  # shown
PREFIX = "memory/"


class MemoryRow(NamedTuple):
    time_ns: float
    kind: str
    bytes: float
    step: int


def recent(run: Run, rank: int) -> list[MemoryRow]:
    """Rows of the rank's latest steps, in the order of time, after a row for what each kind was when they began."""
    rows = sorted(row for frame in recent_frames(run, frozenset([rank])) for row in _rows(frame))
    first = max((row.step for row in rows), default=0) - STEPS + 1
    shown = [row for row in rows if row.step >= first]
    before = {row.kind: row for row in rows if row.step < first}
    return [row._replace(time_ns=shown[0].time_ns) for row in before.values()] + shown


def peaks(run: Run, ranks: frozenset[int]) -> dict[int, dict[str, float]]:
    """The most that each of `ranks` had of each kind lately, bytes; ranks that said nothing are left out."""
    found: dict[int, dict[str, float]] = {}
    for frame in recent_frames(run, ranks):
        for row in _rows(frame):
            kinds = found.setdefault(frame.rank, {})
            kinds[row.kind] = max(row.bytes, kinds.get(row.kind, 0.0))
    return found


def _rows(frame: Frame) -> Iterator[MemoryRow]:
    columns = (frame.counters[name].tolist() for name in ("time_ns", "name", "value", "step"))
    for time_ns, name, value, step in zip(*columns, strict=True):
        if (text := frame.strings[name]).startswith(PREFIX):
            yield MemoryRow(time_ns, text.removeprefix(PREFIX), value, step)
