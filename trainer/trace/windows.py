"""Any window of a run at the resolution of a screen, from a bounded number of bytes however long the run is.

A window is widened to whole cells of a power of two of nanoseconds, not wider than a pixel, so neighbouring
requests share their answers. What the pyramid holds at that level comes from its tiles; segments that it
does not hold so finely are few within such a window, and are computed from their spans.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainer.trace import segments, zoom
from trainer.trace.frame import Columns
from trainer.trace.kinds import LANE_OF, Kind, Lane
from trainer.trace.manifest import Segment
from trainer.trace.pyramid import Pyramid, opened
from trainer.trace.segments import BrokenSegment
from trainer.trace.store_reader import StoreReader
from trainer.trace.zoom import FULL, TILE_BITS, TILE_CELLS

log = logging.getLogger(__name__)

MOST_PIXELS = 8192
FEW_SPANS, FEW_SEGMENTS = 60_000, 4  # up to here a window is answered by its spans themselves
MOST_SPANS, MOST_SEGMENTS = 400_000, 12  # that are read to compute cells
RASTER_COLUMNS = ["rank", "kind", "start_ns", "duration_ns"]

Array = np.ndarray[Any, Any]
SpansOfRank = tuple[int, Columns, list[str]]  # rank, span columns, the texts that they index


@dataclass(frozen=True)
class Window:
    """Cells number `first` to `end` - 1 of 2^bits ns each, of lanes `lane_from` to `lane_to` - 1: rank × len(Lane) + lane."""

    bits: int
    first: int
    end: int
    lane_from: int
    lane_to: int

    @property
    def from_ns(self) -> int:
        return self.first << self.bits

    @property
    def to_ns(self) -> int:
        return self.end << self.bits


@dataclass
class Cells:
    """For each lane in which something is done (`lanes`, ascending) and each cell: which kind took most of it, and how much.

    `kind` is 0 where nothing is done; `of_kind` is that kind's share of the cell and `coverage` that of all kinds, 1 to
    255 for anything up to the whole. Waiting for data is not counted: it does nothing.
    """

    window: Window
    lanes: Array
    kind: Array
    of_kind: Array
    coverage: Array


def window_of(
    reader: StoreReader, from_ns: int, to_ns: int, pixels: int, lane_from: int = 0, lane_to: int | None = None
) -> Window:
    """The window widened to cells no wider than a pixel, and cut to the run."""
    bits = max(zoom.LEAST_BITS, max(1, (to_ns - from_ns) // pixels).bit_length() - 1)
    low, high = max(from_ns, reader.manifest.start_ns), min(to_ns, reader.manifest.end_ns + 1)
    lanes = (max(reader.manifest.ranks, default=-1) + 1) * len(Lane)
    lane_to = lanes if lane_to is None else min(lanes, lane_to)
    if high <= low:  # nothing was recorded there
        low, high = from_ns, from_ns + 1
    first = low >> bits
    return Window(bits, first, max(first + 1, -(-high >> bits)), min(lane_from, lane_to), lane_to)


def segments_in(reader: StoreReader, window: Window) -> list[Segment]:
    start_ns, end_ns, spans, _ = reader.extents
    return [reader.segments[at] for at in np.flatnonzero((spans > 0) & (end_ns >= window.from_ns) & (start_ns < window.to_ns))]


def is_few(found: list[Segment], window: Window) -> bool:
    """Whether the window's spans themselves are the better answer."""
    return len(found) <= FEW_SEGMENTS and sum(_within(segment, window) for segment in found) <= FEW_SPANS


def _within(segment: Segment, window: Window) -> float:
    """About how many of its spans lie in the window."""
    length_ns = max(1, segment.end_ns - segment.start_ns)
    inside_ns = min(segment.end_ns, window.to_ns) - max(segment.start_ns, window.from_ns)
    return segment.spans * min(1.0, max(0.0, inside_ns / length_ns))


def cells(reader: StoreReader, window: Window) -> Cells:
    """The window's cells; they are wider than was asked for only where too much would have to be read."""
    with opened(reader.folder) as pyramid:
        found = segments_in(reader, window)
        bits = min(window.bits, max(pyramid.top_bits, zoom.LEAST_BITS)) if pyramid.segments else window.bits
        while True:
            coarse = [s for s in found if s.number > pyramid.segments or s.zoom_bits > bits]
            if bits >= pyramid.top_bits or (len(coarse) <= MOST_SEGMENTS and sum(s.spans for s in coarse) <= MOST_SPANS):
                break
            bits += 1
        shift = bits - window.bits
        first = window.first >> shift if shift >= 0 else window.first << -shift
        end = -(-window.end >> shift) if shift >= 0 else window.end << -shift
        window = Window(bits, first, end, window.lane_from, window.lane_to)
        return _dominant(window, _parts(reader.folder, window, pyramid, coarse))


def _parts(folder: Path, window: Window, pyramid: Pyramid, coarse: list[Segment]) -> list[tuple[int, zoom.Tile]]:
    """(number, tile) of all that is in the window; several may have one number."""
    first, last = window.first >> TILE_BITS, window.end - 1 >> TILE_BITS
    parts = list(pyramid.tiles(window.bits, first, last).items())
    for segment in coarse:
        try:
            spans = segments.numbers(segments.read(folder, segment, RASTER_COLUMNS))
        except BrokenSegment as broken:
            log.error("a segment is not shown: %s", broken)
            continue
        first = max(window.first, segment.start_ns >> window.bits)
        made = zoom.raster(spans, window.bits, first, min(window.end, (segment.end_ns >> window.bits) + 1) - first)
        parts += zoom.tiles(made).items()
    return parts


class _Sums:
    """The busiest kind and all kinds' time of lanes by cells, a tile at a time."""

    def __init__(self, lanes: int):
        self.best, self.total = (np.zeros((lanes, TILE_CELLS), np.uint32) for _ in range(2))
        self.kind = np.zeros((lanes, TILE_CELLS), np.uint8)

    def add(self, kind: int, rows: Array, values: Array) -> None:
        best = self.best[rows]
        is_more = values > best
        self.best[rows] = np.where(is_more, values, best)
        self.kind[rows] = np.where(is_more, np.uint8(kind), self.kind[rows])
        self.total[rows] += values


def _dominant(window: Window, parts: list[tuple[int, zoom.Tile]]) -> Cells:
    by_number: dict[int, zoom.Tile] = {}
    for number, tile in parts:
        by_number[number] = zoom.added(by_number[number], tile) if number in by_number else tile
    count, first_tile = window.lane_to - window.lane_from, window.first >> TILE_BITS
    width = (window.end - 1 >> TILE_BITS) - first_tile + 1
    planes = [np.zeros((count, width * TILE_CELLS), np.uint8) for _ in range(3)]
    for number, tile in by_number.items():
        at = slice((number - first_tile) * TILE_CELLS, (number - first_tile + 1) * TILE_CELLS)
        sums = _summed(window, tile)
        planes[0][:, at], planes[1][:, at], planes[2][:, at] = sums.kind, _share(sums.best), _share(sums.total)
    low = window.first - (first_tile << TILE_BITS)
    planes = [plane[:, low : low + window.end - window.first] for plane in planes]
    active = planes[0].any(axis=1)
    return Cells(window, np.flatnonzero(active) + window.lane_from, *(np.ascontiguousarray(plane[active]) for plane in planes))


def _summed(window: Window, tile: zoom.Tile) -> _Sums:
    sums = _Sums(window.lane_to - window.lane_from)
    kinds = tile.tracks & 0xFF
    for kind in np.unique(kinds[kinds != Kind.WAIT]).tolist():
        of_kind = kinds == kind
        rows = (tile.tracks[of_kind] >> 8) * len(Lane) + LANE_OF[kind] - window.lane_from
        inside = (rows >= 0) & (rows < len(sums.kind))
        sums.add(kind, rows[inside], tile.values[of_kind][inside])
    return sums


def _share(values: Array) -> Array:
    """0 to FULL as 0 to 255; what is there does not become 0."""
    return ((np.minimum(values, FULL) * np.uint32(255) + (FULL - 1)) // FULL).astype(np.uint8)


def spans(reader: StoreReader, window: Window) -> list[SpansOfRank]:
    """All spans that touch the window, in the order of recording within a segment."""
    found: list[SpansOfRank] = []
    for segment in segments_in(reader, window):
        try:
            shares = segments.by_rank(segments.read(reader.folder, segment))
        except BrokenSegment as broken:
            log.error("a segment is not shown: %s", broken)
            continue
        for rank, (columns, texts) in shares.items():
            start, lane = columns["start_ns"], rank * len(Lane) + columns["lane"].astype(np.int64)
            inside = (start < window.to_ns) & (np.maximum(start + columns["duration_ns"], start + 1) > window.from_ns)
            inside &= (lane >= window.lane_from) & (lane < window.lane_to)
            if inside.any():
                found.append((rank, {name: column[inside] for name, column in columns.items()}, texts))
    return found
