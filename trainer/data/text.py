"""Text found on every machine that runs this: the sources of Python's own library."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

MOST_BYTES = 1 << 20


class Text:
    """`take` gives bytes (samples, context) and, for each of them, the byte that follows."""

    def __init__(self, seed: int, batch: int, context: int):
        self._seed, self._batch, self._context = seed, batch, context
        self._bytes = np.frombuffer(_read(), np.uint8)

    def step(self, step: int) -> np.ndarray:
        """Where the samples begin that all copies together learn from in `step`."""
        chance = np.random.default_rng((self._seed, step))
        return chance.integers(0, len(self._bytes) - self._context, self._batch)

    def take(self, samples: np.ndarray) -> tuple[Tensor, Tensor]:
        places = samples[:, None] + np.arange(self._context + 1)
        windows = torch.from_numpy(self._bytes[places].astype(np.int64))
        inputs, targets = windows[:, :-1], windows[:, 1:]  # of a single sample both lie in one piece: copied all the same
        return inputs.clone(memory_format=torch.contiguous_format), targets.clone(memory_format=torch.contiguous_format)


def _read() -> bytes:
    """The first MOST_BYTES of the library's modules in the order of their names."""
    text = bytearray()
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        text += path.read_bytes()
        if len(text) >= MOST_BYTES:
            break
    return bytes(text[:MOST_BYTES])
