"""The fully connected digit reader: 784–16–16–10 and 13,002 parameters by default."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.models.linear import Linear
from trainer.models.seeded import seeded
from trainer.spec import Perceptron

PIXELS = 28 * 28
DIGITS = 10


class PerceptronModel:
    """Layers 0 … hidden_layers; each hidden one is a Linear and a ReLU, the last a Linear."""

    def __init__(self, spec: Perceptron, seed: int, dtype: torch.dtype):
        self._spec, self._seed, self._dtype = spec, seed, dtype
        self.layers = spec.layers

    def stage(self, first: int, last: int) -> nn.Sequential:
        """Layers `first` up to, not including, `last`: (samples, in) to (samples, out)."""
        return nn.Sequential(*(self._layer(number) for number in range(first, last)))

    def hand_off_shape(self, samples: int) -> tuple[int, ...]:
        """Of the activations between two stages, and of their gradients."""
        return (samples, self._spec.width)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy; outputs (samples, 10), targets (samples,)."""
        return functional.cross_entropy(outputs, targets)

    def _layer(self, number: int) -> nn.Module:
        inputs = PIXELS if number == 0 else self._spec.width
        if number == self.layers - 1:
            return seeded(self._seed, number, self._dtype, lambda: Linear(inputs, DIGITS))
        return seeded(self._seed, number, self._dtype, lambda: nn.Sequential(Linear(inputs, self._spec.width), nn.ReLU()))
