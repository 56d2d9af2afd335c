"""What a rank's copy of its stages has to do with the other copies, whichever way they share their work.

A step goes: backwards (of the `replicas`), `complete_gradients`, an optimizer over what is `owned`, `spread`.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch.distributed as dist
from torch import Tensor, nn

from trainer.splits.data import Alone, Averaged, Replica


class Copies:
    """Whole copies: each has all parameters, averaged gradients and optimizer state. Without a `group` there is one.

    `modules` and `replicas` are by stage; `axis` names the group in spans. `owned` are the parameters, or pieces of
    them, that this rank's optimizer updates, plain tensors by the name they have in `modules`. After
    `complete_gradients` the averaged gradients are theirs.
    """

    in_pieces = False  # whether no two copies own the same

    def __init__(self, modules: nn.ModuleDict, replicas: Mapping[str, Replica], group: dist.ProcessGroup | None = None):
        self.replicas, self.group = replicas, group
        self._modules = modules
        self.owned: dict[str, nn.Parameter] = dict(modules.named_parameters())

    def complete_gradients(self, step: int) -> None:
        """After the last backward: whatever of averaging the backwards did not do."""

    def spread(self, step: int) -> None:
        """After the optimizer: bring what it changed to where it is needed, and let go of all gradients."""
        self._modules.zero_grad(set_to_none=True)

    def whole(self) -> dict[str, Tensor]:
        """All parameters of this rank's stages, whole. Every rank of the group has to call."""
        return {name: parameter.detach() for name, parameter in self._modules.named_parameters()}


def averaged(modules: nn.ModuleDict, group: dist.ProcessGroup, axis: str, bucket_mb: float) -> Copies:
    return Copies(modules, {stage: Averaged(module, group, axis, bucket_mb) for stage, module in modules.items()}, group)


def alone(modules: nn.ModuleDict) -> Copies:
    return Copies(modules, {stage: Alone(module) for stage, module in modules.items()})
