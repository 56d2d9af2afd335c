"""Layers whose first values depend on the job's seed and the layer's number alone.

So a stage builds only its own layers and gets what the unsplit model has there.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def seeded(seed: int, number: int, dtype: torch.dtype, build: Callable[[], nn.Module]) -> nn.Module:
    """What `build` makes, from its own random numbers; the global generator stays as it was.

    Values are drawn in float32 and then cast, so that they are the same in any wider precision.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed * 1_000_003 + number)
        return build().to(dtype)
