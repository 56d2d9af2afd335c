"""ZeRO: copies that learn from their own samples, but keep parts of what is equal on all of them.

Of N copies each needs an Nth of the optimizer's state to update an Nth of the parameters (Rajbhandari et al.,
"ZeRO", 2020). An AllReduce is a ReduceScatter and an AllGather, so the update fits in between at no more traffic:

- zero-1: gradients add up whole, are reduce-scattered by the last backward, and what the optimizer made of
  the parameters is gathered after it.
- zero-2: every backward reduce-scatters, so that only a part of the gradients is kept between micro-batches.
- zero-3: parameters are gathered layer by layer, for each forward and again for each backward, and let go behind it.

All three are torch's FSDP2 with other switches. It cuts every parameter along its first axis into N pieces,
the last ones smaller or empty where that does not come out even, and one layer's travel together.
"""

from __future__ import annotations

import time
import warnings
from typing import Literal, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from trainer.probes.held import local
from trainer.splits.copies import Copies
from trainer.splits.data import PutOff, gradients_of

Mode = Literal["zero-1", "zero-2", "zero-3"]


class ShardedReplica:
    """A stage under FSDP2. Its layers are what is gathered and reduce-scattered at once."""

    bucket_bytes = 0
    beside = False  # on CPUs FSDP2 waits for each of its collectives where it is called

    def __init__(self, module: nn.Sequential, mesh: DeviceMesh, axis: str, mode: Mode):
        self.module: nn.Module = module
        self.axis = axis
        self.every = mode != "zero-1"
        drop = mode == "zero-3"
        self.layers = [fully_shard(layer, mesh=mesh, reshard_after_forward=drop) for layer in module if _learns(layer)]
        for place, layer in enumerate(self.layers):
            # By itself FSDP gathers ahead what went before in time, with several micro-batches not the layer before.
            layer.set_modules_to_backward_prefetch([self.layers[max(0, place - 1)]])
        self._stage = fully_shard(module, mesh=mesh, reshard_after_forward=drop)  # has no parameters left of its own
        self._stage.set_reshard_after_backward(drop)
        # It fears for outputs that are views, as a Linear's are, lest one changes them in place. Nobody does.
        warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor", UserWarning)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.module(inputs)

    def backward(self, output: Tensor, gradient: Tensor | None, average: bool) -> int:
        self._stage.set_requires_gradient_sync(average)
        output.backward(gradient)
        return time.monotonic_ns()

    def backward_weights(self, put_off: PutOff, average: bool) -> int:
        gradients = gradients_of(put_off)
        torch.autograd.backward(list(gradients), list(gradients.values()))
        if average:
            self._stage.set_requires_gradient_sync(True)
            # FSDP averages in hooks of its layers' backwards, and here were none. torch's own pipeline stages call
            # this for the same reason (torch.distributed.pipelining.stage).
            fully_shard.state(self.module)._root_post_backward_final_callback()  # type: ignore[attr-defined]
        return time.monotonic_ns()


class Sharded(Copies):
    """`owned` are this rank's pieces, on the storage of FSDP's; a piece may be empty."""

    in_pieces = True

    def __init__(self, modules: nn.ModuleDict, group: dist.ProcessGroup, axis: str, mode: Mode):
        device = next(modules.parameters()).device.type
        mesh = DeviceMesh.from_group(group, device, mesh_dim_names=("copies",))
        stages = {
            stage: ShardedReplica(cast(nn.Sequential, module), mesh, axis, mode) for stage, module in modules.items()
        }
        super().__init__(modules, stages, group)
        self._layers = [layer for stage in stages.values() for layer in stage.layers]
        self._keeps_whole = mode != "zero-3"
        self._pieces = self.owned
        self.owned = {name: nn.Parameter(local(piece).detach()) for name, piece in self._pieces.items()}

    def complete_gradients(self, step: int) -> None:
        for layer in self._layers:
            layer.reshard()  # what was whole is out of date once the optimizer has changed the pieces
        for name, piece in self._pieces.items():
            if piece.grad is not None:
                self.owned[name].grad, piece.grad = local(piece.grad).detach(), None

    def spread(self, step: int) -> None:
        for parameter in self.owned.values():
            parameter.grad = None
        if self._keeps_whole:
            for layer in self._layers:
                layer.unshard()

    def whole(self) -> dict[str, Tensor]:
        return {name: (one.full_tensor() if isinstance(one, DTensor) else one).detach()
                for name, one in self._modules.named_parameters()}


def _learns(layer: nn.Module) -> bool:
    return next(layer.parameters(), None) is not None
