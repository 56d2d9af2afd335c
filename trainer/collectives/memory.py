"""Where the chunks that a plan speaks of lie in a rank's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import torch
from torch import Tensor

from trainer.collectives.plans.plan import Chunks, cut


class Memory(Protocol):
    def views(self, chunks: Chunks) -> list[Tensor]:
        """Where these chunks are, or are to be put, in their order: flat, as few as lie behind one another, none empty."""
        ...


class Flat:
    """A flat tensor, cut into `chunks` of nearly one size."""

    def __init__(self, tensor: Tensor, chunks: int):
        self.tensor, self._bounds = tensor, cut(tensor.numel(), chunks)

    def views(self, chunks: Chunks) -> list[Tensor]:
        spans = [(self._bounds[first], self._bounds[last + 1]) for first, last in _runs(chunks)]
        return [self.tensor[begin:end] for begin, end in spans if end > begin]


class Crossed:
    """Of an all-to-all: chunk s·N + d is on its way from rank s to rank d. `inputs` and `outputs` are flat, by rank.

    What only passes through lies in between; only chunks of one size may do so.
    """

    def __init__(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], place: int):
        self._inputs, self._outputs, self._place = inputs, outputs, place
        self._passing: dict[int, Tensor] = {}

    def views(self, chunks: Chunks) -> list[Tensor]:
        return [view for view in map(self._view, chunks) if view.numel()]

    def _view(self, chunk: int) -> Tensor:
        source, target = divmod(chunk, len(self._inputs))
        if source == self._place:
            return self._inputs[target]
        if target == self._place:
            return self._outputs[source]
        if chunk not in self._passing:
            self._passing[chunk] = torch.empty_like(self._inputs[0])
        return self._passing[chunk]


@lru_cache(maxsize=4096)
def _runs(chunks: Chunks) -> tuple[tuple[int, int], ...]:
    """First and last of each run of numbers that follow one another."""
    runs: list[tuple[int, int]] = []
    for chunk in chunks:
        if runs and runs[-1][1] == chunk - 1:
            runs[-1] = runs[-1][0], chunk
        else:
            runs.append((chunk, chunk))
    return tuple(runs)
