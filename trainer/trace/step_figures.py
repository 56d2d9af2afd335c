"""Figures of single steps, from frames as they come: a row as soon as every rank has closed its step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from trainer.trace.figures import bubble_shares
from trainer.trace.frame import BrokenFrame, Frame
from trainer.trace.kinds import MODEL_WORK, Kind, Lane

_COUNTERS = ("loss", "samples", "learning_rate", "grad_norm")
_IS_WORK = np.zeros(256, bool)
_IS_WORK[list(MODEL_WORK)] = True
_FAR_NS = 2**62

Array = np.ndarray[Any, Any]


class _Step:
    """What is known of a step that is not closed yet; one number a rank."""

    def __init__(self, ranks: int):
        self.busy_ns, self.wait_ns, self.collective_ns = (np.zeros(ranks, np.int64) for _ in range(3))
        self.work_start_ns, self.start_ns = (np.full(ranks, _FAR_NS, np.int64) for _ in range(2))
        self.work_end_ns, self.end_ns = (np.full(ranks, -_FAR_NS, np.int64) for _ in range(2))
        self.ended = np.zeros(ranks, bool)  # by their STEP span
        self.counters: dict[str, float] = {}


class StepFigures:
    """Give it every frame once, each rank's in order; `ready` hands out rows in the order of steps.

    Memory holds open steps only. A rank closes a step with its STEP span, with a later step's span, or
    with its last frame; in the last case, and where frames are missing, the step's row is flagged
    incomplete and has no bubble.
    """

    def __init__(self, ranks: int, next_step: int = 0, last_end_ns: int | None = None):
        """`last_end_ns`: when the step before `next_step` ended."""
        self.ranks, self.next_step = ranks, next_step
        self._last_end_ns = last_end_ns
        self._open: dict[int, _Step] = {}
        self._reached = np.full(ranks, next_step - 1, np.int64)  # the last step of which a rank showed anything
        self._gone = np.zeros(ranks, bool)
        self._gaps: list[tuple[int, int]] = []  # first and last step that may lack spans
        self._gap_from: dict[int, int] = {}  # of ranks that have shown no step since

    def add(self, frame: Frame, gap: bool = False) -> None:
        """Take a frame in; `gap` says that frames of its rank are missing before it."""
        if frame.rank >= self.ranks:
            raise BrokenFrame(f"rank {frame.rank} is outside a run of {self.ranks} ranks")
        steps = frame.spans["step"]
        self._note_gap(frame.rank, steps, gap)
        if (steps >= self.next_step).any():
            self._add_spans(frame)
        self._add_counters(frame)
        self._gone[frame.rank] |= frame.final

    def leave(self, rank: int) -> None:
        """The rank's last frame came in some earlier life of the recorder."""
        self._gone[rank] = True

    def ready(self, all_ended: bool = False) -> list[dict[str, Any]]:
        """The rows of steps that are closed by now; with `all_ended` the rows of all that began."""
        rows = []
        while self._open:
            number = min(self._open)
            if not (all_ended or self._is_closed(number)):
                break
            rows.append(self._row(number, self._open.pop(number)))
            self.next_step = number + 1
        return rows

    def _is_closed(self, number: int) -> bool:
        """By all ranks, and with its loss if it has one: the counter may come one flush after the spans."""
        if not (self._ended(number) | self._gone).all():
            return False
        return "loss" in self._open[number].counters or bool((self._gone | (self._reached > number + 1)).all())

    def _ended(self, number: int) -> Array:
        """Which ranks are through with the step."""
        return self._open[number].ended | (self._reached > number)

    def _step(self, number: int) -> _Step:
        if number not in self._open:
            self._open[number] = _Step(self.ranks)
        return self._open[number]

    def _note_gap(self, rank: int, steps: Array, gap: bool) -> None:
        """Whatever is missing belongs between the last step the rank showed and the first it shows next."""
        if gap:
            self._gap_from.setdefault(rank, int(self._reached[rank]))
        if rank in self._gap_from and (steps >= 0).any():
            self._gaps.append((self._gap_from.pop(rank), int(steps[steps >= 0].min())))

    def _has_gap(self, number: int) -> bool:
        self._gaps = [(first, last) for first, last in self._gaps if last >= self.next_step]
        still_open = [(first, number) for first in self._gap_from.values()]
        return any(first <= number <= last for first, last in self._gaps + still_open)

    def _add_spans(self, frame: Frame) -> None:
        columns, rank = frame.spans, frame.rank
        keep = columns["step"] >= self.next_step
        numbers, of = np.unique(columns["step"][keep], return_inverse=True)
        kind, lane = columns["kind"][keep], columns["lane"][keep]
        start = columns["start_ns"][keep].astype(np.int64)
        duration = columns["duration_ns"][keep].astype(np.int64)
        work, is_step = _IS_WORK[kind], kind == Kind.STEP
        sums = [_sum(of, duration, pick, len(numbers)) for pick in (work, kind == Kind.WAIT, lane == Lane.COLLECTIVE)]
        work_start, work_end = _extent(of, start, duration, work, len(numbers))
        step_start, step_end = _extent(of, start, duration, is_step, len(numbers))
        for at, number in enumerate(numbers.tolist()):
            step = self._step(number)
            for total, added in zip((step.busy_ns, step.wait_ns, step.collective_ns), sums, strict=True):
                total[rank] += added[at]
            step.work_start_ns[rank] = min(step.work_start_ns[rank], work_start[at])
            step.work_end_ns[rank] = max(step.work_end_ns[rank], work_end[at])
            step.start_ns[rank] = min(step.start_ns[rank], step_start[at])
            step.end_ns[rank] = max(step.end_ns[rank], step_end[at])
            step.ended[rank] |= step_end[at] > -_FAR_NS
        self._reached[rank] = max(self._reached[rank], numbers[-1])

    def _add_counters(self, frame: Frame) -> None:
        columns = (frame.counters[name].tolist() for name in ("step", "value", "name"))
        for number, value, place in zip(*columns, strict=True):
            name = frame.strings[place]
            if number >= self.next_step and name in _COUNTERS:
                self._step(number).counters[name] = value

    def _row(self, number: int, step: _Step) -> dict[str, Any]:
        complete = bool((step.ended | (self._reached > number)).all()) and not self._has_gap(number)
        work_start, work_end = int(step.work_start_ns.min()), int(step.work_end_ns.max())
        start = min(int(step.start_ns.min()), work_start)
        end = max(int(step.end_ns.max()), work_end)
        is_seen, has_work = end > -_FAR_NS, work_end > work_start
        bubble = ideal = None
        if complete and has_work and step.busy_ns.any():
            bubble, ideal = bubble_shares(int(step.busy_ns.sum()), self.ranks, work_end - work_start)
        counters = {name: step.counters.get(name) for name in _COUNTERS}
        period_ns = None
        if is_seen:
            period_ns = end - (start if self._last_end_ns is None else self._last_end_ns)
            self._last_end_ns = end
        return {
            "step": number,
            "start_ns": start if is_seen else None,
            "end_ns": end if is_seen else None,
            "duration_ns": end - start if is_seen else None,
            "period_ns": period_ns,
            "work_start_ns": work_start if has_work else None,
            "work_end_ns": work_end if has_work else None,
            "bubble_share": bubble,
            "ideal_share": ideal,
            "busy_ns": step.busy_ns.tolist(),
            "wait_ns": step.wait_ns.tolist(),
            "collective_ns": step.collective_ns.tolist(),
            # JSON has no NaN: a loss that is none is shown as missing
            **{name: value if value is not None and math.isfinite(value) else None for name, value in counters.items()},
            "samples_per_second": _rate(counters["samples"], period_ns or 0),
            "complete": complete and is_seen,
        }


def _sum(of: Array, duration: Array, pick: Array, count: int) -> Array:
    total = np.zeros(count, np.int64)
    np.add.at(total, of[pick], duration[pick])
    return total


def _extent(of: Array, start: Array, duration: Array, pick: Array, count: int) -> tuple[Array, Array]:
    """First start and last end of the picked spans, for each step."""
    first, last = np.full(count, _FAR_NS, np.int64), np.full(count, -_FAR_NS, np.int64)
    np.minimum.at(first, of[pick], start[pick])
    np.maximum.at(last, of[pick], (start + duration)[pick])
    return first, last


def _rate(samples: float | None, period_ns: int) -> float | None:
    return samples / period_ns * 1e9 if samples is not None and math.isfinite(samples) and period_ns > 0 else None
