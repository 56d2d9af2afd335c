"""Spans of a whole run that a query finds, a bounded number of segments at a time, whatever the run's length.

Whoever counts all of them goes on from `through` until the last segment; whoever walks along them asks for the matches
of those segments that are next.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from trainer.trace import segments
from trainer.trace.kinds import Lane
from trainer.trace.manifest import Segment
from trainer.trace.segments import BrokenSegment
from trainer.trace.span_query import SpanQuery
from trainer.trace.store_reader import StoreReader

log = logging.getLogger(__name__)

MOST_READ = 12  # segments, of 65,536 spans each, for one answer: some 50 ms
MOST_PASSED = 4096  # segments that are known to hold nothing
LIT_CELLS = 2048  # in which the whole run is told of
_PLACE = ("rank", "lane", "start_ns", "duration_ns")

Array = np.ndarray[Any, Any]


@dataclass
class Found:
    """`segments` (number, matches, start of the first and of the last in ns) are those after the asked one with any match.

    `through` is the last that was looked at. `lit` says coarsely where: (lane, first cell, cells) of a lane rank × len(Lane)
    + lane and cells of `cell_ns` counted from the run's zero, in order of lanes and times within a segment. `unread` could
    not be read.
    """

    through: int
    cell_ns: int
    segments: list[tuple[int, int, int, int]] = field(default_factory=list)
    lit: list[tuple[int, int, int]] = field(default_factory=list)
    unread: list[int] = field(default_factory=list)


def search(reader: StoreReader, query: SpanQuery, after: int) -> Found:
    """What the query finds in the segments that follow number `after`, as many as one answer is to read."""
    bits = ((reader.manifest.end_ns - reader.manifest.start_ns) // LIT_CELLS).bit_length()
    found = Found(min(after, len(reader.segments)), 1 << bits)
    left = MOST_READ
    for segment in reader.segments[after : after + MOST_PASSED]:
        if query.may_be_in(segment):
            if not left:
                break
            left -= 1
            _note(found, segment, *_matches(reader, query, segment, found), bits)
        found.through = segment.number
    return found


def matches(reader: StoreReader, query: SpanQuery, number: int) -> tuple[Array, Array]:
    """(start_ns float64, lane uint32) of a segment's matches in the order of their starts, those of one moment by lane.

    BrokenSegment if it cannot be read, IndexError if there is no segment of that number.
    """
    if not 1 <= number <= len(reader.segments):
        raise IndexError(f"segment {number} of {len(reader.segments)}")
    lane, start, _ = _found_in(reader, query, reader.segments[number - 1])
    order = np.lexsort((lane, start))
    return start[order].astype("<f8"), lane[order].astype("<u4")


def _matches(reader: StoreReader, query: SpanQuery, segment: Segment, found: Found) -> tuple[Array, Array, Array]:
    try:
        return _found_in(reader, query, segment)
    except BrokenSegment as broken:
        log.error("a segment is not searched: %s", broken)
        found.unread.append(segment.number)
        return (np.zeros(0, np.int64),) * 3


def _found_in(reader: StoreReader, query: SpanQuery, segment: Segment) -> tuple[Array, Array, Array]:
    """(lane, start_ns, end_ns) of the matches, by lane and start: the order of a segment's rows."""
    columns = [*_PLACE, *sorted(query.columns - set(_PLACE))]
    table: pa.Table = segments.read(reader.folder, segment, columns)
    rank, lane, start, duration = (table[name].to_numpy() for name in _PLACE)
    rows = np.flatnonzero(query.holds(table))
    return rank[rows].astype(np.int64) * len(Lane) + lane[rows], start[rows], start[rows] + duration[rows]


def _note(found: Found, segment: Segment, lane: Array, start: Array, end: Array, bits: int) -> None:
    if not len(start):
        return
    found.segments.append((segment.number, len(start), int(start.min()), int(start.max())))
    first, last = start >> bits, np.maximum(end - 1, start) >> bits
    begins = np.ones(len(start), bool)
    begins[1:] = (lane[1:] != lane[:-1]) | (first[1:] > last[:-1] + 1)
    at = np.flatnonzero(begins)
    cells = np.maximum.reduceat(last, at) + 1 - first[at]
    found.lit += zip(lane[at].tolist(), first[at].tolist(), cells.tolist(), strict=True)
