"""A sum over spans that says whether two places hold the same ones: in any order, each as often.

A span's numbers are mixed to 64 bits (multiply and shift, after Steele and others' SplitMix64) and added up
modulo 2^64. A rank carries the sum of all it recorded in its frames; the store adds up what it sealed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from trainer.trace.frame import Columns

COLUMNS = ("start_ns", "duration_ns", "bytes", "step", "sequence", "peer", "micro_batch", "stage", "kind")
_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_MASK = 2**64 - 1


def mixed(spans: Columns) -> np.ndarray[Any, Any]:
    """64 bits a span; columns may be whole numbers or floats that hold such."""
    bits = np.zeros(len(spans["kind"]), np.uint64)
    for name in COLUMNS:
        bits = (bits ^ spans[name].astype(np.int64).view(np.uint64)) * _FACTOR
        bits ^= bits >> np.uint64(29)
    return bits


def total(spans: Columns) -> int:
    return int(mixed(spans).sum(dtype=np.uint64))


def added(one: int, other: int) -> int:
    return (one + other) & _MASK


def by_rank(spans: Columns) -> dict[int, int]:
    """The sum of each rank's spans; `spans` are sorted by `rank`."""
    if not len(spans["rank"]):
        return {}
    ranks, firsts = np.unique(spans["rank"], return_index=True)
    sums = np.add.reduceat(mixed(spans), firsts)
    return dict(zip(ranks.tolist(), sums.tolist(), strict=True))
