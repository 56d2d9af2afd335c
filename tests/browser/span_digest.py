"""The checksum of static/js/timeline/digest.js over a store's columns, with numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

_LOW = 0xFFFFFFFF


def span_digest(spans: dict[str, np.ndarray[Any, Any]]) -> dict[str, int]:
    """Count and checksum of one rank's spans, given as a frame's columns."""
    whole = {name: np.floor(spans[name]).astype(np.int64) for name in ("start_ns", "duration_ns", "bytes")}
    values = [whole["start_ns"] & _LOW, (whole["start_ns"] >> 32) & _LOW, whole["duration_ns"] & _LOW, whole["bytes"] & _LOW]
    small = ("step", "sequence", "peer", "micro_batch", "stage", "kind", "lane")
    values += [spans[name].astype(np.int64) & _LOW for name in small]
    mixed = np.full(len(spans["start_ns"]), 17, np.uint64)
    for value in values:
        mixed = ((mixed ^ value.astype(np.uint64)) * np.uint64(2654435761)) & np.uint64(_LOW)
        mixed ^= mixed >> np.uint64(15)
    return {"spans": len(mixed), "sum": int(mixed.sum() & np.uint64(_LOW))}
