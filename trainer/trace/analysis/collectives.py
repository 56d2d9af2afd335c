"""Collectives matched across ranks: who was late, what was transfer, what was waiting.

In one collective the transfer is the shortest member's duration; what a member spends beyond it is waiting for
the last to arrive. Ends must agree to within the clocks' uncertainty; starts may differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.trace.analysis.spans import Array, Spans
from trainer.trace.kinds import Lane


@dataclass
class Collectives:
    """`at` are the members' places among the spans; the rest has a number a member."""

    at: Array
    match: Array  # which collective: members with the same number are one
    members: Array  # how many ranks of it are there
    transfer_ns: Array
    wait_ns: Array
    late_ns: Array  # after the first member's start
    last: Array  # the place of the member that came last
    end_apart_ns: Array  # last end less first end
    end_off_ns: Array  # own end less the members' mean end


def matched(spans: Spans) -> Collectives:
    """By group, kind, sequence number and step; what a probe did not number is not matched."""
    at = np.flatnonzero((spans["lane"] == Lane.COLLECTIVE) & (spans["sequence"] >= 0))
    group, sequence = spans["group"][at].astype(np.int64), spans["sequence"][at].astype(np.int64)
    kind_step = spans["kind"][at].astype(np.int64) << 32 | (spans["step"][at].astype(np.int64) + 1)
    start, end = spans["start_ns"][at], spans["end_ns"][at]
    order = np.lexsort((start, kind_step, group << 32 | sequence))
    at, start, end = at[order], start[order], end[order]
    keys = (group[order], sequence[order], kind_step[order])
    if not len(at):
        return Collectives(*(np.zeros(0, np.int64) for _ in range(9)))
    is_first = np.append(True, np.logical_or.reduce([key[1:] != key[:-1] for key in keys]))
    firsts = np.flatnonzero(is_first)
    match = np.cumsum(is_first) - 1
    sizes = np.diff(np.append(firsts, len(at)))
    duration = end - start
    transfer = np.minimum.reduceat(duration, firsts)[match]
    first_end = np.minimum.reduceat(end, firsts)
    apart = (np.maximum.reduceat(end, firsts) - first_end)[match]
    after_first = end - first_end[match]
    off = after_first - (np.add.reduceat(after_first, firsts) / sizes)[match]
    last = at[firsts + sizes - 1]  # within a collective members are in the order of their starts
    late = start - start[firsts][match]
    return Collectives(at, match, sizes[match], transfer, duration - transfer, late, last[match], apart, off)
