"""A whole run, segment by segment: memory holds the spans of open steps and what has been added up so far."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainer.grid import Grid
from trainer.trace import segments
from trainer.trace.analysis.collectives import matched
from trainer.trace.analysis.critical_path import CriticalPath, critical_path
from trainer.trace.analysis.spans import COLUMNS, Array, Groups, Spans, joined, of_table, picked
from trainer.trace.analysis.steps import StepTable, tabled
from trainer.trace.analysis.traffic import KINDS, sent_bytes, totals
from trainer.trace.figures import bubble_shares
from trainer.trace.segments import BrokenSegment
from trainer.trace.store_reader import StoreReader

log = logging.getLogger(__name__)

MOST_OPEN_SPANS = 2_000_000
_READ = [*COLUMNS, "group"]


@dataclass
class Totals:
    """Of all ranks and steps so far; nothing here grows with the run's length."""

    ranks: int
    spans: int = 0
    steps: int = 0
    broken_segments: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        ranks = self.ranks
        self.by_kind_spans, self.by_kind_ns, self.by_kind_bytes = (np.zeros((ranks, KINDS)) for _ in range(3))
        self.sent_bytes = np.zeros((ranks, ranks))
        self.busy_ns, self.communication_ns, self.hidden_ns, self.collective_ns, self.transfer_ns, self.late_ns, self.path_ns = (
            np.zeros(ranks) for _ in range(7)
        )
        self.path_by_kind_ns = np.zeros(KINDS)
        self.path_idle_ns = 0.0
        self.window_ns = 0.0
        self.end_apart_ns = 0

    def add(self, spans: Spans) -> None:
        self.spans += len(spans["kind"])
        for total, part in zip(
            (self.by_kind_spans, self.by_kind_ns, self.by_kind_bytes), totals(spans, self.ranks), strict=True
        ):
            total += part
        self.sent_bytes += sent_bytes(spans, self.ranks)

    def add_steps(self, table: StepTable, path: CriticalPath) -> None:
        self.steps += len(table.numbers)
        for name in ("busy_ns", "communication_ns", "hidden_ns", "collective_ns", "transfer_ns", "late_ns"):
            getattr(self, name)[:] += getattr(table, name).sum(axis=0)
        self.path_ns += path.by_rank_ns.sum(axis=0)
        self.path_by_kind_ns += path.by_kind_ns.sum(axis=0)
        self.path_idle_ns += float(path.idle_ns.sum())
        self.window_ns += float(np.maximum(table.work_end_ns - table.work_start_ns, 0).sum())
        self.end_apart_ns = max(self.end_apart_ns, int(table.end_apart_ns.max()))

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers; matrices as lists of rows."""
        busy, communication = float(self.busy_ns.sum()), float(self.communication_ns.sum())
        bubble = bubble_shares(busy, self.ranks, self.window_ns)[0] if busy and self.window_ns else None
        return {
            "spans": self.spans, "steps": self.steps, "bubble_share": bubble,
            "overlap_share": float(self.hidden_ns.sum()) / communication if communication else None,
            "end_apart_ns": self.end_apart_ns, "path_idle_ns": self.path_idle_ns,
            **{name: getattr(self, name).tolist() for name in (
                "busy_ns", "communication_ns", "hidden_ns", "collective_ns", "transfer_ns", "late_ns", "path_ns",
                "path_by_kind_ns", "by_kind_spans", "by_kind_ns", "by_kind_bytes", "sent_bytes",
            )},
            "broken_segments": self.broken_segments,
        }


def analysed(
    reader: StoreReader, ranks: int, grid: Grid | None = None,
    on_steps: Callable[[StepTable, CriticalPath], None] = lambda table, path: None,
) -> Totals:
    """Everything about a sealed run; `on_steps` gets the figures of each batch of steps, in order, once they are whole."""
    result = Totals(ranks)
    for spans in _in_whole_steps(reader, Groups(ranks, grid), result):
        numbers = np.unique(spans["step"])
        collectives = matched(spans)
        table = tabled(spans, numbers, ranks, collectives)
        path = critical_path(spans, numbers, ranks, collectives)
        result.add_steps(table, path)
        on_steps(table, path)
    return result


def _in_whole_steps(reader: StoreReader, groups: Groups, result: Totals) -> Iterator[Spans]:
    """The spans of steps that every rank has left; at the end, or where too many wait, of those that there are.

    A run that began again after losing a rank has some steps twice. Each time counts; what was under way when the rank was
    lost does not.
    """
    reached = np.full(groups.ranks, -1, np.int64)
    restarts = _restarts(reader)
    waiting: list[Spans] = []
    for segment in reader.segments:
        try:
            spans = of_table(segments.read(reader.folder, segment, _READ), groups)
        except BrokenSegment as broken:
            log.error("a segment is left out: %s", broken)
            result.broken_segments.append(str(broken))
            continue
        result.add(spans)
        while restarts and (spans["start_ns"] >= restarts[0][0]).any():
            moment_ns, step = restarts.pop(0)
            of_this_life = spans["start_ns"] < moment_ns
            before = picked(spans, of_this_life)
            np.maximum.at(reached, before["rank"], before["step"])
            waiting.append(before)
            yield from _taken(waiting, int(reached.min()) - 1)
            waiting.clear()
            reached[:], spans = step - 1, picked(spans, ~of_this_life)
        np.maximum.at(reached, spans["rank"], spans["step"])
        waiting.append(spans)
        is_crowded = sum(len(part["step"]) for part in waiting) > MOST_OPEN_SPANS
        closed = int(reached.max()) if is_crowded else int(reached.min()) - 1
        if closed >= 0:
            yield from _taken(waiting, closed)
    yield from _taken(waiting, int(reached.max(initial=-1)))


def _restarts(reader: StoreReader) -> list[tuple[int, int]]:
    """(when, first step) of each new life of the run, in order. Every rank has marked it, in the same words."""
    found: dict[str, tuple[int, int]] = {}
    for mark in reader.marks():
        if mark["kind"] == "restart":
            when = mark["time_ns"], mark["step"]
            found[mark["text"]] = min(found.get(mark["text"], when), when)
    return sorted(found.values())


def _taken(waiting: list[Spans], last_step: int) -> Iterator[Spans]:
    """The spans of steps up to `last_step`, which wait no longer; those outside any step go as well."""
    if not waiting:
        return
    spans = joined(waiting)
    step: Array = spans["step"]
    later = step > last_step
    waiting[:] = [picked(spans, later)] if later.any() else []
    of_steps = ~later & (step >= 0)
    if of_steps.any():
        yield picked(spans, of_steps)
