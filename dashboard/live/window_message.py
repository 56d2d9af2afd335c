"""One window of a run as bytes, little-endian: what dashboard/docs/data-path.md says under "A window".

    64 bytes   "LKW1" · u32 form · u32 lanes · u32 cells · f64 from_ns · f64 cell_ns · u32 segments · u32 frames ·
               f64 settled_ns · 16 bytes of 0
    CELLS      u32 of every lane: rank × 4 + lane, ascending; then three planes of u8, a lane after the other, a byte a cell:
               the kind with most of it, that kind's share and all kinds' share of it in 255ths; each part is padded to 8
    SPANS      whole frames (trainer/trace/frame.py), one or several a rank, with the spans that touch the window
"""

from __future__ import annotations

import struct

from trainer.trace.frame import COUNTER_COLUMNS, MARK_COLUMNS, Frame, empty, encode
from trainer.trace.windows import Cells, SpansOfRank, Window

MAGIC = b"LKW1"
HEAD = struct.Struct("<4sIIIddIId16x")
CELLS, SPANS = 1, 2


def of_cells(cells: Cells, segments: int, settled_ns: float) -> bytes:
    """`segments`: the number of the last segment that reaches into the window; `settled_ns`: as StoreReader says."""
    window = cells.window
    head = HEAD.pack(
        MAGIC, CELLS, len(cells.lanes), window.end - window.first, window.from_ns, 1 << window.bits, segments, 0, settled_ns
    )
    parts = [cells.lanes.astype("<u4").tobytes(), cells.kind.tobytes(), cells.of_kind.tobytes(), cells.coverage.tobytes()]
    return b"".join([head, *(part + bytes(-len(part) % 8) for part in parts)])


def of_spans(window: Window, shares: list[SpansOfRank], segments: int, settled_ns: float) -> bytes:
    frames = [
        encode(Frame(
            rank=rank, sequence=0, spans=columns, counters=empty(COUNTER_COLUMNS), marks=empty(MARK_COLUMNS), strings=texts,
        ))
        for rank, columns, texts in shares
    ]
    head = HEAD.pack(
        MAGIC, SPANS, 0, window.end - window.first, window.from_ns, 1 << window.bits, segments, len(frames), settled_ns
    )
    return b"".join([head, *frames])
