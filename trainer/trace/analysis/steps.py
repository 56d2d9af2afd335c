"""Figures of whole steps, a number a step and rank."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.trace.analysis.collectives import Collectives, matched
from trainer.trace.analysis.spans import Array, Spans
from trainer.trace.kinds import MODEL_WORK, Kind, Lane

IS_WORK = np.zeros(256, bool)
IS_WORK[list(MODEL_WORK)] = True
FAR_NS = 2**62
_STRETCH_NS = 2**44  # five hours: times further apart are not compared within one batch of steps


@dataclass
class StepTable:
    """Rows are the steps `numbers`, columns ranks; extents are FAR_NS and -FAR_NS where nothing was seen."""

    numbers: Array
    recorded_spans: Array
    busy_ns: Array
    wait_ns: Array
    collective_ns: Array
    communication_ns: Array
    hidden_ns: Array
    transfer_ns: Array
    late_ns: Array
    work_start_ns: Array  # of all ranks: a number a step
    work_end_ns: Array
    start_ns: Array
    end_ns: Array
    end_apart_ns: Array  # the largest of the step's collectives
    end_off_ns: Array  # of each rank, the mean over the step's collectives; NaN where it took part in none with another


def tabled(spans: Spans, numbers: Array, ranks: int, collectives: Collectives | None = None) -> StepTable:
    """The figures of the steps `numbers`, ascending, of spans that all belong to one of them."""
    steps, row = len(numbers), np.searchsorted(numbers, spans["step"])
    place = row * ranks + spans["rank"]
    kind, lane, duration = spans["kind"], spans["lane"], spans["duration_ns"]

    def summed(at: Array, values: Array) -> Array:
        return np.bincount(at, values, steps * ranks).astype(np.int64).reshape(steps, ranks)

    def extent(which: Array) -> tuple[Array, Array]:
        low, high = np.full(steps, FAR_NS, np.int64), np.full(steps, -FAR_NS, np.int64)
        np.minimum.at(low, row[which], spans["start_ns"][which])
        np.maximum.at(high, row[which], spans["end_ns"][which])
        return low, high

    is_work = IS_WORK[kind]
    matches = collectives or matched(spans)
    communication, hidden, of = _hidden(spans)
    apart = np.zeros(steps, np.int64)
    np.maximum.at(apart, row[matches.at], np.where(matches.members > 1, matches.end_apart_ns, 0))
    shared = matches.members > 1
    work_start, work_end = extent(is_work)
    start, end = extent(kind == Kind.STEP)
    return StepTable(
        numbers, np.bincount(place, minlength=steps * ranks).reshape(steps, ranks),
        summed(place[is_work], duration[is_work]),
        summed(place[kind == Kind.WAIT], duration[kind == Kind.WAIT]),
        summed(place[lane == Lane.COLLECTIVE], duration[lane == Lane.COLLECTIVE]),
        summed(place[of], communication), summed(place[of], hidden),
        summed(place[matches.at], matches.transfer_ns), summed(place[matches.at], matches.late_ns),
        work_start, work_end, start, end, apart, _mean(place[matches.at][shared], matches.end_off_ns[shared], steps, ranks),
    )


def _mean(place: Array, values: Array, steps: int, ranks: int) -> Array:
    """By step and rank; NaN where there is no value."""
    counts = np.bincount(place, minlength=steps * ranks)
    sums = np.bincount(place, values, steps * ranks)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan).reshape(steps, ranks)


def _hidden(spans: Spans) -> tuple[Array, Array, Array]:
    """Of each stretch in which a rank communicates: (its length, how much of it the rank computed meanwhile, a span in it)."""
    compute = np.flatnonzero((spans["lane"] == Lane.COMPUTE) & (spans["kind"] != Kind.WAIT))
    talk = np.flatnonzero((spans["lane"] == Lane.COLLECTIVE) | (spans["lane"] == Lane.POINT_TO_POINT))
    if not len(talk):
        return talk, talk, talk
    zero = int(spans["start_ns"].min())
    base = spans["rank"].astype(np.int64) * _STRETCH_NS
    start = base + np.clip(spans["start_ns"] - zero, 0, _STRETCH_NS - 1)
    end = base + np.clip(spans["end_ns"] - zero, 0, _STRETCH_NS - 1)
    order = talk[np.argsort(start[talk], kind="stable")]
    reach = np.maximum.accumulate(end[order])
    firsts = np.flatnonzero(np.append(True, start[order][1:] > reach[:-1]))
    low, high = start[order][firsts], reach[np.append(firsts[1:], len(order)) - 1]
    work = compute[np.argsort(start[compute], kind="stable")]
    return high - low, _busy_before(high, start[work], end[work]) - _busy_before(low, start[work], end[work]), order[firsts]


def _busy_before(times: Array, start: Array, end: Array) -> Array:
    """How long the intervals, one after the other, have lasted by each of `times`."""
    if not len(start):
        return np.zeros(len(times), np.int64)
    before = np.append(0, np.cumsum(end - start))
    at = np.searchsorted(start, times, side="right") - 1
    inside = np.minimum(times, end[at]) - start[at]
    return np.where(at < 0, 0, before[at] + np.maximum(inside, 0))
