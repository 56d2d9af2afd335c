"""Fewer points, the same picture: from each stretch of a curve its lowest and its highest point."""

from __future__ import annotations

from itertools import pairwise

import numpy as np


def indices(values: np.ndarray, most_points: int = 1000) -> np.ndarray:
    """Which of `values` to draw: at most `most_points` of them, with the first, the last and all extremes."""
    count = len(values)
    if count <= most_points:
        return np.arange(count)
    edges = np.linspace(0, count, (most_points - 2) // 2 + 1).astype(int)
    kept = {0, count - 1}
    for start, end in pairwise(edges):
        stretch = values[start:end]
        kept.add(start + int(stretch.argmin()))
        kept.add(start + int(stretch.argmax()))
    return np.array(sorted(kept))
