"""The frame: what one rank recorded since its last flush, as fixed-width little-endian columns.

    header   96 bytes, HEADER below
    spans    one column after another, SPAN_COLUMNS, widest first; each is padded to 8 bytes
    counters one column after another, COUNTER_COLUMNS, padded likewise
    marks    one column after another, MARK_COLUMNS, padded likewise
    strings  a JSON list of text that `name`, `group` and `text` columns index; padded to 8 bytes

Times are nanoseconds on the run's clock, as float64: exact below 2^53 ns (104 days) and readable
in a browser without a copy. `static/js/core/frame.js` reads the same bytes; both are held to
`tests/unit/golden/`.

A rank's sequence numbers count up by one a frame, so a receiver drops what it has seen and counts
what it lacks; `spans_before` says how many spans the rank had recorded before this frame.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MAGIC = b"LKF1"
NONE = -1  # in step, micro_batch, stage, sequence and peer: does not apply

HEADER = np.dtype([
    ("magic", "S4"), ("rank", "<u4"),
    ("sequence", "<u8"),
    ("frame_bytes", "<u4"), ("strings_bytes", "<u4"),
    ("spans", "<u4"), ("counters", "<u4"), ("marks", "<u4"), ("final", "<u4"),
    ("spans_before", "<u8"), ("spans_dropped", "<u8"),
    ("clock_offset_ns", "<f8"), ("clock_uncertainty_ns", "<f8"),
    ("written_ns", "<f8"), ("checksum", "<u8"), ("reserved", "<u8"),
])

SPAN_COLUMNS = (
    ("start_ns", "<f8"), ("duration_ns", "<f8"), ("bytes", "<f8"),
    ("step", "<i4"), ("sequence", "<i4"), ("peer", "<i4"),
    ("micro_batch", "<i2"), ("stage", "<i2"), ("name", "<u2"), ("group", "<u2"),
    ("kind", "u1"), ("lane", "u1"),
)
COUNTER_COLUMNS = (("time_ns", "<f8"), ("value", "<f8"), ("step", "<i4"), ("name", "<u2"))
MARK_COLUMNS = (("time_ns", "<f8"), ("step", "<i4"), ("kind", "<u2"), ("text", "<u2"))

Columns = dict[str, np.ndarray[Any, Any]]

_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_FIELDS = struct.Struct("<4sIQ6I2Q3dQ8x")  # HEADER: all its fields at once
_Layout = tuple[tuple[str, np.dtype[Any], int], ...]
_LAYOUTS: tuple[_Layout, ...] = tuple(
    tuple((name, np.dtype(dtype), np.dtype(dtype).itemsize) for name, dtype in layout)
    for layout in (SPAN_COLUMNS, COUNTER_COLUMNS, MARK_COLUMNS)
)


@dataclass
class Frame:
    """`spans`, `counters` and `marks` are dictionaries of equally long columns."""

    rank: int
    sequence: int
    spans: Columns
    counters: Columns
    marks: Columns
    strings: list[str] = field(default_factory=list)
    spans_before: int = 0
    spans_dropped: int = 0
    clock_offset_ns: float = 0.0
    clock_uncertainty_ns: float = 0.0
    written_ns: float = 0.0
    final: bool = False
    checksum: int = 0  # of all spans that the rank recorded, these included (trainer.trace.checksum)


class BrokenFrame(ValueError):
    """The bytes are not a whole frame of this version."""


def empty(columns: tuple[tuple[str, str], ...], rows: int = 0) -> Columns:
    return {name: np.zeros(rows, dtype) for name, dtype in columns}


def encode(frame: Frame) -> bytes:
    return encode_around(frame, _rows(frame.spans), laid_out_spans(frame.spans))


def encode_around(frame: Frame, count: int, spans: bytes) -> bytes:
    """The frame with so many spans, which are laid out already, in place of its own."""
    strings = _as_json(frame.strings).encode(errors="replace")
    sizes, parts = [count], [spans]
    for table, layout in zip((frame.counters, frame.marks), _LAYOUTS[1:], strict=True):
        sizes.append(rows := _rows(table))
        parts.append(laid_out(table, layout) if rows else b"")
    parts.append(_padded(strings, b" "))
    size = _FIELDS.size + sum(map(len, parts))
    header = _FIELDS.pack(
        MAGIC, frame.rank, frame.sequence, size, len(strings), *sizes, frame.final, frame.spans_before,
        frame.spans_dropped, frame.clock_offset_ns, frame.clock_uncertainty_ns, frame.written_ns, frame.checksum,
    )
    return b"".join([header, *parts])


def laid_out_spans(spans: Columns) -> bytes:
    return laid_out(spans, _LAYOUTS[0])


def laid_out(columns: Columns, layout: _Layout) -> bytes:
    """One column after another, each padded."""
    return b"".join(_padded(np.ascontiguousarray(columns[name], dtype).tobytes()) for name, dtype, _ in layout)


def decode(data: bytes | memoryview) -> Frame:
    """The frame in `data`; its columns are read-only views into it. BrokenFrame if it is not one."""
    data = memoryview(data)
    if len(data) < HEADER.itemsize:
        raise BrokenFrame(f"{len(data)} bytes are fewer than a header's {HEADER.itemsize}")
    magic, rank, sequence, frame_bytes, strings_bytes, *sizes = _FIELDS.unpack_from(data)[:8]
    if magic != MAGIC:
        raise BrokenFrame(f"a frame starts with {MAGIC!r}, not {magic!r}")
    expected = HEADER.itemsize + _columns_bytes(sizes) + _padded_size(strings_bytes)
    if not frame_bytes == expected == len(data):
        raise BrokenFrame(f"{len(data)} bytes were given, the header says {frame_bytes}, its counts {expected}")
    at, tables = HEADER.itemsize, []
    for layout, rows in zip(_LAYOUTS, sizes, strict=True):
        table, at = _table(layout, data, rows, at)
        tables.append(table)
    try:
        strings = json.loads(bytes(data[at : at + strings_bytes]))
    except ValueError as error:
        raise BrokenFrame(f"its strings are not JSON: {error}") from None
    if not isinstance(strings, list) or not all(isinstance(text, str) for text in strings):
        raise BrokenFrame("its strings are not a list of text")
    final, before, dropped, offset_ns, uncertainty_ns, written_ns, checksum = _FIELDS.unpack_from(data)[8:]
    return Frame(
        rank, sequence, tables[0], tables[1], tables[2], strings, before, dropped, offset_ns, uncertainty_ns, written_ns,
        bool(final), checksum,
    )


def span_columns(data: bytes, rows: int) -> Columns:
    """Views of a frame's span columns, as they lie in it."""
    return _table(_LAYOUTS[0], data, rows, 0)[0]


def _table(layout: _Layout, data: bytes | memoryview, rows: int, at: int) -> tuple[Columns, int]:
    """The columns of `rows` that begin at byte `at`, and where they end."""
    table = {}
    for name, dtype, itemsize in layout:
        table[name] = np.frombuffer(data, dtype, rows, at)
        at += _padded_size(rows * itemsize)
    return table, at


def _rows(columns: Columns) -> int:
    lengths = {len(column) for column in columns.values()}
    if len(lengths) != 1:
        raise ValueError(f"columns of one table have different lengths: {sorted(lengths)}")
    return lengths.pop()


def _columns_bytes(sizes: list[int]) -> int:
    return sum(
        _padded_size(rows * itemsize) for layout, rows in zip(_LAYOUTS, sizes, strict=True) if rows for _, _, itemsize in layout
    )


def _padded_size(size: int) -> int:
    return size + (-size) % 8


def _padded(data: bytes, fill: bytes = b"\0") -> bytes:
    return data + fill * ((-len(data)) % 8)
