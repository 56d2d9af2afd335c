"""Pixels as a PNG file (ISO/IEC 15948): eight-bit RGB, no filter, deflated."""

from __future__ import annotations

import struct
import zlib

import numpy as np


def encode(pixels: np.ndarray) -> bytes:
    """`pixels`: uint8 of shape (height, width, 3)."""
    height, width, _ = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = np.zeros((height, 1 + width * 3), np.uint8)  # each row begins with its filter: 0, none
    rows[:, 1:] = pixels.reshape(height, width * 3)
    parts = (_chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
