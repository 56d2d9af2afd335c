"""The ranks along one axis that share the work inside a stage."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass
class Peers:
    """Size and this rank's place are known from the grid; the group is there once the ranks have met."""

    size: int
    place: int
    group: dist.ProcessGroup | None = None

    def all_reduce(self, part: Tensor, operation: dist.ReduceOp.RedOpType = dist.ReduceOp.SUM) -> Tensor:
        """All ranks' parts reduced to one; `part` stays as it is."""
        assert self.group is not None
        whole = part.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(whole, operation, group=self.group)
        return whole

    def all_gather(self, part: Tensor, axis: int) -> Tensor:
        """All ranks' parts, one behind the other along `axis`."""
        assert self.group is not None
        first = part.movedim(axis, 0).contiguous()
        whole = first.new_empty(self.size * first.shape[0], *first.shape[1:])
        dist.all_gather_single(whole, first, group=self.group)
        return whole.movedim(0, axis)

    def reduce_scatter(self, part: Tensor, axis: int) -> Tensor:
        """The sum of all ranks' parts, cut along `axis`, of which each rank gets the piece of its place."""
        assert self.group is not None
        first = part.movedim(axis, 0).contiguous()
        piece = first.new_empty(first.shape[0] // self.size, *first.shape[1:])
        dist.reduce_scatter_single(piece, first, group=self.group)
        return piece.movedim(0, axis)

    def all_to_all(self, parts: Tensor) -> Tensor:
        """`parts[i]` goes to the rank at place i; what comes back at [i] is from there."""
        assert self.group is not None
        got = torch.empty_like(parts, memory_format=torch.contiguous_format)
        dist.all_to_all_single(got, parts.contiguous(), group=self.group)
        return got
