"""Figures of single steps, from frames as they come: a row as soon as every rank has closed its step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trainer.grid import Grid
from trainer.trace.analysis.spans import Array, Groups, Spans, joined, of_frames, picked
from trainer.trace.analysis.steps import FAR_NS, StepTable, tabled
from trainer.trace.figures import bubble_shares
from trainer.trace.frame import BrokenFrame, Frame
from trainer.trace.kinds import Kind

_COUNTERS = ("loss", "samples", "learning_rate", "grad_norm")
_BY_RANK = ("recorded_spans", "busy_ns", "wait_ns", "collective_ns", "communication_ns", "hidden_ns", "transfer_ns", "late_ns")
MOST_OPEN_SPANS = 2_000_000  # then the oldest open step is given up as incomplete: a silent rank must not fill the memory


class StepFigures:
    """Give it every frame once, each rank's in order; `ready` hands out rows in the order of steps.

    Memory holds open steps only. A rank closes a step with its STEP span, with a later step's span, or
    with its last frame; in the last case, and where frames are missing, the step's row is flagged
    incomplete and has no bubble.
    """

    def __init__(self, ranks: int, next_step: int = 0, last_end_ns: int | None = None, grid: Grid | None = None):
        """`last_end_ns`: when the step before `next_step` ended."""
        self.ranks, self.next_step = ranks, next_step
        self._last_end_ns = last_end_ns
        self._groups = Groups(ranks, grid)
        self._new: list[Frame] = []  # taken together by `ready`: numpy's cost is by the call
        self._open: list[Spans] = []
        self._ended: dict[int, Array] = {}  # of each open step: which ranks are through, by their STEP span
        self._counters: dict[int, dict[str, float]] = {}
        self._reached = np.full(ranks, next_step - 1, np.int64)  # the last step of which a rank showed anything
        self._gone = np.zeros(ranks, bool)
        self._gaps: list[tuple[int, int]] = []  # first and last step that may lack spans
        self._gap_from: dict[int, int] = {}  # of ranks that have shown no step since

    def add(self, frame: Frame, gap: bool = False) -> None:
        """Take a frame in; `gap` says that frames of its rank are missing before it."""
        if frame.rank >= self.ranks:
            raise BrokenFrame(f"rank {frame.rank} is outside a run of {self.ranks} ranks")
        if gap or frame.rank in self._gap_from:
            self._absorb()
            self._note_gap(frame.rank, frame.spans["step"], gap)
        self._new.append(frame)

    def leave(self, rank: int) -> None:
        """The rank's last frame came in some earlier life of the recorder."""
        self._gone[rank] = True

    def begin_again(self, step: int) -> None:
        """Ranks have lost one of them and do again all from `step` on; what was open is theirs who are gone."""
        self._new, self._open, self._ended, self._counters = [], [], {}, {}
        self._gaps, self._gap_from = [], {}
        self.next_step, self._reached = step, np.full(self.ranks, step - 1, np.int64)
        self._gone = np.zeros(self.ranks, bool)

    def ready(self, all_ended: bool = False) -> list[dict[str, Any]]:
        """The rows of steps that are closed by now; with `all_ended` the rows of all that began."""
        self._absorb()
        is_crowded = sum(len(part["step"]) for part in self._open) > MOST_OPEN_SPANS
        closed: list[int] = []
        for number in sorted(self._ended.keys() | self._counters.keys()):
            if not (all_ended or self._is_closed(number) or (is_crowded and not closed)):
                break
            closed.append(number)
        if not closed:
            return []
        table = self._tabled(closed)
        return [self._row(number, table, at) for at, number in enumerate(closed)]

    def _tabled(self, closed: list[int]) -> StepTable | None:
        """The figures of these steps, whose spans are kept no longer; None if there are no spans at all."""
        if not self._open:
            return None
        spans = joined(self._open)
        inside = spans["step"] <= closed[-1]
        self._open = [] if inside.all() else [picked(spans, ~inside)]
        return tabled(picked(spans, inside), np.array(closed), self.ranks)

    def _absorb(self) -> None:
        """Take the new frames' spans to the open steps'."""
        frames, self._new = self._new, []
        for frame in frames:
            self._add_counters(frame)
        full = [frame for frame in frames if len(frame.spans["step"])]
        if full:
            spans = of_frames(full, self._groups)
            spans = picked(spans, spans["step"] >= self.next_step)
            np.maximum.at(self._reached, spans["rank"], spans["step"])
            for number in np.unique(spans["step"]).tolist():
                self._ended.setdefault(number, np.zeros(self.ranks, bool))
            is_end = spans["kind"] == Kind.STEP
            for number, rank in zip(spans["step"][is_end].tolist(), spans["rank"][is_end].tolist(), strict=True):
                self._ended[number][rank] = True
            self._open.append(spans)
        for frame in frames:
            self._gone[frame.rank] |= frame.final

    def _is_closed(self, number: int) -> bool:
        """By all ranks, and with its loss if it has one: the counter may come one flush after the spans."""
        if not (self._through(number) | self._gone).all():
            return False
        return "loss" in self._counters.get(number, {}) or bool((self._gone | (self._reached > number + 1)).all())

    def _through(self, number: int) -> Array:
        """Which ranks are through with the step."""
        ended = self._ended.get(number)
        return self._reached > number if ended is None else ended | (self._reached > number)

    def _note_gap(self, rank: int, steps: Array, gap: bool) -> None:
        """Whatever is missing belongs between the last step the rank showed and the first it shows next."""
        if gap:
            self._gap_from.setdefault(rank, int(self._reached[rank]))
        if rank in self._gap_from and (steps >= 0).any():
            self._gaps.append((self._gap_from.pop(rank), int(steps[steps >= 0].min())))

    def _has_gap(self, number: int) -> bool:
        self._gaps = [(first, last) for first, last in self._gaps if last >= number]
        still_open = [(first, number) for first in self._gap_from.values()]
        return any(first <= number <= last for first, last in self._gaps + still_open)

    def _add_counters(self, frame: Frame) -> None:
        columns = (frame.counters[name].tolist() for name in ("step", "value", "name"))
        for number, value, place in zip(*columns, strict=True):
            name = frame.strings[place]
            if number >= self.next_step and name in _COUNTERS:
                self._counters.setdefault(number, {})[name] = value

    def _row(self, number: int, table: StepTable | None, at: int) -> dict[str, Any]:
        complete = bool(self._through(number).all()) and not self._has_gap(number)
        self._ended.pop(number, None)
        known = self._counters.pop(number, {})
        counters = {name: known.get(name) for name in _COUNTERS}
        self.next_step = number + 1
        figures = _Figures(self.ranks, table, at)
        bubble = ideal = None
        if complete and figures.has_work and any(figures.by_rank["busy_ns"]):
            window_ns = figures.work_end_ns - figures.work_start_ns
            bubble, ideal = bubble_shares(sum(figures.by_rank["busy_ns"]), self.ranks, window_ns)
        period_ns = None
        if figures.is_seen:
            period_ns = figures.end_ns - (figures.start_ns if self._last_end_ns is None else self._last_end_ns)
            self._last_end_ns = figures.end_ns
        return {
            "step": number,
            **figures.extent(),
            "period_ns": period_ns,
            "bubble_share": bubble,
            "ideal_share": ideal,
            **figures.by_rank,
            "exposed_share": figures.exposed_share if complete and figures.is_seen else None,
            "end_apart_ns": figures.end_apart_ns,
            "end_off_ns": figures.end_off_ns,
            # JSON has no NaN: a loss that is none is shown as missing
            **{name: value if value is not None and math.isfinite(value) else None for name, value in counters.items()},
            "samples_per_second": _rate(counters["samples"], period_ns or 0),
            "complete": complete and figures.is_seen,
        }


class _Figures:
    """One step's line of a table as plain numbers; without a table nothing was seen of it."""

    def __init__(self, ranks: int, table: StepTable | None, at: int):
        self.by_rank = {name: [0] * ranks if table is None else getattr(table, name)[at].tolist() for name in _BY_RANK}
        self.work_start_ns, self.work_end_ns, self.start_ns, self.end_ns, self.end_apart_ns = FAR_NS, -FAR_NS, FAR_NS, -FAR_NS, 0
        self.end_off_ns: list[int | None] = [None] * ranks
        if table is not None:
            self.end_off_ns = [None if math.isnan(off) else round(off) for off in table.end_off_ns[at].tolist()]
            self.work_start_ns, self.work_end_ns = int(table.work_start_ns[at]), int(table.work_end_ns[at])
            self.start_ns = min(int(table.start_ns[at]), self.work_start_ns)
            self.end_ns = max(int(table.end_ns[at]), self.work_end_ns)
            self.end_apart_ns = int(table.end_apart_ns[at])
        self.is_seen, self.has_work = self.end_ns > -FAR_NS, self.work_end_ns > self.work_start_ns

    @property
    def exposed_share(self) -> float | None:
        """Mean over ranks of the part of the step's extent in which one communicates and does not compute."""
        exposed_ns = sum(self.by_rank["communication_ns"]) - sum(self.by_rank["hidden_ns"])
        extent_ns = len(self.by_rank["busy_ns"]) * (self.end_ns - self.start_ns)
        return exposed_ns / extent_ns if extent_ns > 0 else None

    def extent(self) -> dict[str, int | None]:
        return {
            "start_ns": self.start_ns if self.is_seen else None,
            "end_ns": self.end_ns if self.is_seen else None,
            "duration_ns": self.end_ns - self.start_ns if self.is_seen else None,
            "work_start_ns": self.work_start_ns if self.has_work else None,
            "work_end_ns": self.work_end_ns if self.has_work else None,
        }


def _rate(samples: float | None, period_ns: int) -> float | None:
    return samples / period_ns * 1e9 if samples is not None and math.isfinite(samples) and period_ns > 0 else None
