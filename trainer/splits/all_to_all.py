"""An all-to-all that gradients go back through."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trainer.splits.peers import Peers


def exchange(parts: Tensor, peers: Peers) -> Tensor:
    """`parts[i]` goes to the rank at place i; what comes back at [i] is from there."""
    exchanged = _Exchange.apply(parts, peers)
    assert isinstance(exchanged, Tensor)
    return exchanged


class _Exchange(torch.autograd.Function):
    """An all-to-all undoes itself, so gradients go back by another."""

    @staticmethod
    def forward(ctx: Any, parts: Tensor, peers: Peers) -> Tensor:
        ctx.peers = peers
        return peers.all_to_all(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.peers.all_to_all(gradients[0]), None
