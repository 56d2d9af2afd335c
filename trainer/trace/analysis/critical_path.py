"""The critical path of a step: the chain of work, transfers and idle gaps that made it as long as it was.

From the span that ended last one goes back, each time to what had to end before: from a receive to its send,
from a collective to the member that came last, from anything else to what its rank had ended last before. What
is on no such chain could have been slower without the step noticing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.trace.analysis.collectives import Collectives
from trainer.trace.analysis.spans import Array, Spans
from trainer.trace.analysis.traffic import KINDS
from trainer.trace.kinds import Kind

SLACK_NS = 20_000  # between what ended and what it made possible, as one rank's clock reads them
_STRETCH_NS = 2**44


@dataclass
class CriticalPath:
    """The paths of steps: nanoseconds by [step, kind] and [step, rank], idle gaps apart; their parts add up to the extent."""

    by_kind_ns: Array
    by_rank_ns: Array
    idle_ns: Array
    extent_ns: Array  # from the start of the path's first span to the end of its last


def critical_path(spans: Spans, numbers: Array, ranks: int, collectives: Collectives) -> CriticalPath:
    """The paths of the steps `numbers`, ascending, each within its own spans."""
    nodes = np.flatnonzero((spans["kind"] != Kind.WAIT) & (spans["kind"] != Kind.STEP))
    before, arrived = _before(spans, nodes, ranks), np.full(len(spans["kind"]), -1, np.int64)
    arrived[collectives.at] = collectives.last
    sent = _sends(spans)
    found = CriticalPath(
        np.zeros((len(numbers), KINDS)), np.zeros((len(numbers), ranks)), np.zeros(len(numbers)), np.zeros(len(numbers))
    )
    columns = [spans[name] for name in ("start_ns", "end_ns", "kind", "rank", "step")]
    for row, last in _last_of(spans, nodes, numbers):
        _walk(found, row, last, columns, before, arrived, sent)
    return found


def _walk(
    found: CriticalPath, row: int, node: int, columns: list[Array], before: Array, arrived: Array, sent: Array
) -> None:
    """Hot: a few dozen to a few hundred spans a step, one after the other."""
    start, end, kind, rank, step = columns
    number, edge = step[node], int(end[node])
    last_end = edge
    while True:
        if arrived[node] >= 0:
            node = int(arrived[node])
        begin = min(int(start[node]), edge)
        previous = int(sent[node]) if sent[node] >= 0 else int(before[node])
        is_first = previous < 0 or step[previous] != number or end[previous] > end[node]
        until = begin if is_first else max(begin, min(int(end[previous]), edge))
        found.by_kind_ns[row, kind[node]] += edge - until
        found.by_rank_ns[row, rank[node]] += edge - until
        if is_first:
            found.extent_ns[row] = last_end - begin
            return
        edge = min(until, int(end[previous]))
        found.idle_ns[row] += until - edge
        node = previous


def _last_of(spans: Spans, nodes: Array, numbers: Array) -> list[tuple[int, int]]:
    """(row, span) of each step's last end."""
    order = nodes[np.lexsort((spans["end_ns"][nodes], spans["step"][nodes]))]
    ends = np.searchsorted(spans["step"][order], numbers, side="right") - 1
    return [(row, int(order[at])) for row, at in enumerate(ends.tolist()) if at >= 0 and spans["step"][order[at]] == numbers[row]]


def _before(spans: Spans, nodes: Array, ranks: int) -> Array:
    """For each node the one that its rank had ended last before it began; -1 for none. Always one with an earlier end."""
    zero = int(spans["start_ns"].min()) if len(spans["start_ns"]) else 0
    base = spans["rank"][nodes].astype(np.int64) * _STRETCH_NS
    end = base + np.clip(spans["end_ns"][nodes] - zero, 0, _STRETCH_NS - 1)
    start = base + np.clip(spans["start_ns"][nodes] - zero, 0, _STRETCH_NS - 1)
    order = np.argsort(end, kind="stable")
    place = np.empty(len(nodes), np.int64)
    place[order] = np.arange(len(nodes))
    at = np.minimum(np.searchsorted(end[order], start + SLACK_NS, side="right"), place) - 1
    found = nodes[order][np.maximum(at, 0)]
    is_own = (at >= 0) & (spans["rank"][found] == spans["rank"][nodes])
    before = np.full(len(spans["kind"]), -1, np.int64)
    before[nodes] = np.where(is_own, found, -1)
    return before


def _sends(spans: Spans) -> Array:
    """For each receive the place of its send, else -1: by both ranks, step, micro-batch, stage and number, in order."""
    sends = np.flatnonzero((spans["kind"] == Kind.SEND) & (spans["peer"] >= 0))
    receives = np.flatnonzero((spans["kind"] == Kind.RECEIVE) & (spans["peer"] >= 0))
    both = np.concatenate([sends, receives])
    sender = np.concatenate([spans["rank"][sends], spans["peer"][receives]])
    receiver = np.concatenate([spans["peer"][sends], spans["rank"][receives]])
    keys = [spans[name][both] for name in ("sequence", "stage", "micro_batch", "step")] + [receiver, sender]
    is_receive = np.arange(len(both)) >= len(sends)
    order = np.lexsort((spans["start_ns"][both], is_receive, *keys))
    found = np.full(len(spans["kind"]), -1, np.int64)
    if not len(both):
        return found
    is_first = np.append(True, np.logical_or.reduce([key[order][1:] != key[order][:-1] for key in keys]))
    firsts = np.flatnonzero(is_first)
    of = np.cumsum(is_first) - 1
    sends_of = np.add.reduceat((~is_receive[order]).astype(np.int64), firsts)  # they come before their receives
    nth = np.arange(len(order)) - firsts[of] - sends_of[of]
    has = is_receive[order] & (nth < sends_of[of])
    found[both[order][has]] = both[order][(firsts[of] + nth)[has]]
    return found
