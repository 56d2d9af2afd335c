"""Handwritten digits: the 1,797 real ones that come with scikit-learn, enlarged from 8 × 8 to 28 × 28."""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from trainer.data.order import endless_order

SIDE = 28
MOST_INK = 16.0


class Digits:
    """`take` gives pixels (samples, 784), mean 0 and deviation 1 over the whole set, and digits (samples,)."""

    def __init__(self, seed: int, batch: int, dtype: torch.dtype):
        self._seed, self._batch = seed, batch
        table = torch.from_numpy(_read())
        small = table[:, :-1].reshape(-1, 1, 8, 8) / MOST_INK
        pixels = functional.interpolate(small, (SIDE, SIDE), mode="bilinear", align_corners=False).flatten(1)
        self._pixels = ((pixels - pixels.mean()) / pixels.std()).to(dtype)
        self._digits = table[:, -1].long()

    def step(self, step: int) -> np.ndarray:
        """The numbers of the samples that all copies together learn from in `step`."""
        return endless_order(len(self._digits), self._seed, step * self._batch, self._batch)

    def take(self, samples: np.ndarray) -> tuple[Tensor, Tensor]:
        chosen = torch.from_numpy(samples)
        return self._pixels[chosen], self._digits[chosen]


def _read() -> np.ndarray:
    """scikit-learn's table: 64 pixels and the digit a row. Its file is read without the package, whose import takes a second."""
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("scikit-learn, whose digits a perceptron learns from, is not installed")
    with gzip.open(Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz", "rt") as file:
        return np.loadtxt(file, delimiter=",", dtype=np.float64)
