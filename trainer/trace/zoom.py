"""Zoom levels as arithmetic: how busy each kind of each rank was, in cells of 2^bits ns.

A raster holds a row a track (a rank's kind) and a column a cell. Its times add up: two halves of a run
make the raster of the whole, two neighbouring cells make one of the next level. A cell that a span touches,
be it for no time at all, is never 0: presence is exact.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from trainer.trace.frame import Columns

Array = np.ndarray[Any, Any]

LEAST_BITS = 10  # cells of about a microsecond: no clock tells finer times apart
TILE_BITS = 8
TILE_CELLS = 1 << TILE_BITS
FULL = 65_535  # a cell's value in a tile when it is busy throughout
# Of a segment's finest level: so many cells a span (tracks × cells, mostly empty), but no more than are worth their while.
CELLS_A_SPAN, LEAST_RASTER, MOST_RASTER, MOST_CELLS = 16, 1 << 16, 1 << 20, 1 << 14
_TOUCH_NS = 1e-3  # of a span without duration

_HEAD = struct.Struct("<4sII")  # magic, tracks, bytes a cell
_MAGIC = b"LKT1"
_CODEC = pa.Codec("zstd", compression_level=1)


@dataclass
class Raster:
    """`busy_ns` has the shape (tracks, cells); the first cell is number `first`, counted from the run's zero."""

    bits: int
    first: int
    tracks: Array  # int64: rank << 8 | kind, ascending
    busy_ns: Array  # float64

    @property
    def end(self) -> int:
        return self.first + self.busy_ns.shape[1]


def tracks_of(spans: Columns) -> Array:
    return spans["rank"].astype(np.int64) << 8 | spans["kind"]


def bits_for(spans: Columns) -> int:
    """The finest level that is worth keeping of a segment: beyond it so few spans fill a screen that they can be read."""
    count = len(spans["start_ns"])
    if not count:
        return LEAST_BITS
    start_ns, end_ns = int(spans["start_ns"].min()), int((spans["start_ns"] + spans["duration_ns"]).max())
    wanted = min(MOST_RASTER, max(LEAST_RASTER, CELLS_A_SPAN * count))
    cells = min(MOST_CELLS, max(TILE_CELLS, wanted // len(np.unique(tracks_of(spans)))))
    return max(LEAST_BITS, ((end_ns - start_ns) // cells).bit_length())


def raster(spans: Columns, bits: int, first: int, cells: int) -> Raster:
    """What `spans` (whole numbers: rank, kind, start_ns, duration_ns) do in `cells` cells from `first` on."""
    start = spans["start_ns"]
    last_ns = np.maximum(start + spans["duration_ns"] - 1, start)
    inside = (last_ns >> bits >= first) & (start >> bits < first + cells)
    tracks, row = np.unique(tracks_of(spans)[inside], return_inverse=True)
    low, high = first << bits, (first + cells) << bits
    begin = np.clip(start[inside], low, high) - low
    end = np.clip((start + spans["duration_ns"])[inside], low, high) - low
    head = begin >> bits
    tail = np.maximum(np.maximum(end - 1, begin) >> bits, head)
    return Raster(bits, first, tracks, _spread(row, begin, end, head, tail, bits, (len(tracks), cells)))


def _spread(row: Array, begin: Array, end: Array, head: Array, tail: Array, bits: int, shape: tuple[int, int]) -> Array:
    """Each span's time to its cells: the ends by what they cover, all between by running sums of where a span is."""
    tracks, cells = shape
    at_head, at_tail = row * cells + head, row * cells + tail
    longer = tail > head
    in_head = np.where(longer, (head + 1 << bits) - begin, end - begin)
    in_tail = np.where(longer, end - (tail << bits), 0)
    places = np.concatenate([at_head, at_tail])
    busy = np.bincount(places, np.concatenate([in_head, in_tail]), tracks * cells)
    if longer.any():
        wide = cells + 1
        steps = np.bincount((row * wide + head)[longer] + 1, minlength=tracks * wide).astype(np.int32)
        np.subtract.at(steps, (row * wide + tail)[longer], 1)
        steps = np.cumsum(steps.reshape(tracks, wide), axis=1, out=steps.reshape(tracks, wide))
        np.add(busy.reshape(shape), steps[:, :cells] * float(1 << bits), out=busy.reshape(shape))
    busy[places] = np.maximum(busy[places], _TOUCH_NS)
    return busy.reshape(shape)


def coarser(fine: Raster) -> Raster:
    """The next level: two cells become one."""
    left, right = fine.first & 1, fine.end & 1
    busy = np.pad(fine.busy_ns, ((0, 0), (left, right))) if left or right else fine.busy_ns
    return Raster(fine.bits + 1, fine.first >> 1, fine.tracks, busy[:, ::2] + busy[:, 1::2])


@dataclass
class Tile:
    """TILE_CELLS cells of every track that is busy in them; `values` are uint16, FULL for a cell that is busy throughout."""

    tracks: Array
    values: Array


def tiles(made: Raster) -> dict[int, Tile]:
    """The raster cut into tiles, by their number."""
    cut = {}
    for number in range(made.first >> TILE_BITS, (made.end - 1 >> TILE_BITS) + 1):
        low, high = max(made.first, number << TILE_BITS), min(made.end, number + 1 << TILE_BITS)
        part = _values(made.busy_ns[:, low - made.first : high - made.first], made.bits)
        active = part.any(axis=1)
        if active.any():
            tile = np.zeros((int(active.sum()), TILE_CELLS), np.uint16)
            tile[:, low - (number << TILE_BITS) : high - (number << TILE_BITS)] = part[active]
            cut[number] = Tile(made.tracks[active], tile)
    return cut


def _values(busy_ns: Array, bits: int) -> Array:
    """Nanoseconds of a cell as uint16 of FULL; what is there does not become 0."""
    values = np.minimum(busy_ns * (FULL / float(1 << bits)) + 0.5, FULL).astype(np.uint16)
    values[(values == 0) & (busy_ns > 0)] = 1
    return values


def added(one: Tile, other: Tile) -> Tile:
    """What two parts of a run do in the same cells."""
    tracks = np.union1d(one.tracks, other.tracks)
    sums = np.zeros((len(tracks), TILE_CELLS), np.uint32)
    for tile in (one, other):
        sums[np.searchsorted(tracks, tile.tracks)] += tile.values
    return Tile(tracks, np.minimum(sums, FULL).astype(np.uint16))


def folded(tile: Tile, is_right: bool) -> Tile:
    """The tile's cells as half of a tile of the next level."""
    pairs = tile.values[:, ::2].astype(np.uint32) + tile.values[:, 1::2]
    values = np.zeros_like(tile.values)
    at = TILE_CELLS // 2 if is_right else 0
    values[:, at : at + TILE_CELLS // 2] = (pairs + 1) // 2  # rounded up: what is there stays there
    return Tile(tile.tracks, values)


def pack(tile: Tile, is_open: bool) -> bytes:
    """A tile to which much may yet be added keeps all of its precision; else a byte a cell, right to 0.2 %, is enough."""
    values = tile.values.astype("<u2") if is_open else _rounded(tile.values)
    data = tile.tracks.astype("<i8").tobytes() + values.tobytes()
    return _HEAD.pack(_MAGIC, len(tile.tracks), values.itemsize) + _CODEC.compress(data, asbytes=True)


def _rounded(values: Array) -> Array:
    """uint16 as uint8; what is there does not become 0."""
    return np.where(values > 0, np.maximum((values.astype(np.uint32) + 128) // 257, 1), 0).astype(np.uint8)


def unpack(packed: bytes) -> Tile:
    """ValueError if these are not the bytes of a tile."""
    magic, tracks, width = _HEAD.unpack_from(packed)
    if magic != _MAGIC or width not in (1, 2):
        raise ValueError("not a tile of this version")
    data = _CODEC.decompress(packed[_HEAD.size :], decompressed_size=tracks * (8 + width * TILE_CELLS))
    values = np.frombuffer(data, f"<u{width}", offset=8 * tracks).reshape(tracks, TILE_CELLS)
    return Tile(np.frombuffer(data, "<i8", tracks), values if width == 2 else values * np.uint16(257))
