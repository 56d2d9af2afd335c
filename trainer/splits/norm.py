"""The length of the whole model's gradient, wherever its parts are.

Every number of that gradient is counted by one rank, the first of those that hold it alike: of tensor slices the first
counts what is uncut, of copies of the model (mirrored ones too) and of parts of the sequence the first counts all, since
theirs are averaged by now. A split that leaves each rank numbers of its own (ranks of a pipeline, cut matrices, experts,
pieces under ZeRO) has each count them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn


class GradientNorm:
    """`counted` are the parameters whose gradients this rank counts; without a `group` it holds all there are."""

    def __init__(self, counted: Sequence[nn.Parameter], group: dist.ProcessGroup | None, device: torch.device):
        self._counted, self._group, self._device = counted, group, device

    def measure(self) -> Tensor:
        """The length, in float64, the same to the last bit on every rank of the group; all of them have to call."""
        own = [parameter.grad for parameter in self._counted if parameter.grad is not None]
        squares = torch.zeros((), dtype=torch.float64, device=self._device)
        if own:
            squares += torch.nn.utils.get_total_norm(own).double().square()
        if self._group is not None:
            dist.all_reduce(squares, group=self._group)
        return squares.sqrt()
