"""Data parallelism: every copy of the model learns from its own share of the batch, gradients are averaged.

The averaging is torch's DDP: it packs gradients into buckets and starts a bucket's AllReduce as soon as the
backward has filled it, while the backward goes on. With several micro-batches only the last backward does so.
Other ways for copies to share their work are in `sharded` (ZeRO) and `exchange` (a server; everyone to everyone).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from trainer.models.linear import Linear
from trainer.probes.memory import bucket_bytes

PutOff = list[tuple[Linear, Tensor, Tensor]]  # Linears, their inputs and their outputs' gradients


class Replica(Protocol):
    """One copy's stage, and what its backwards exchange with the other copies.

    `axis` names their group in spans; empty if backwards exchange nothing. `every` tells whether each backward
    averages its gradients, or only the last one of a step; `beside`, whether that goes on beside the backward, which
    may then have to wait for it. `bucket_bytes` is what averaging itself keeps in memory.
    """

    module: nn.Module
    axis: str
    every: bool
    beside: bool

    @property
    def bucket_bytes(self) -> int: ...

    def forward(self, inputs: Tensor) -> Tensor: ...

    def backward(self, output: Tensor, gradient: Tensor | None, average: bool) -> int:
        """When this copy's own gradients were ready, ns. With `average`, returns when they are averaged."""

    def backward_weights(self, put_off: PutOff, average: bool) -> int:
        """The second half of a backward, whose Linears were `put_off` by the first; returns as `backward`."""


class Alone:
    """A stage whose backwards exchange nothing."""

    axis, every, beside, bucket_bytes = "", False, False, 0

    def __init__(self, module: nn.Module):
        self.module = module

    def forward(self, inputs: Tensor) -> Tensor:
        return self.module(inputs)

    def backward(self, output: Tensor, gradient: Tensor | None, average: bool) -> int:
        output.backward(gradient)
        return time.monotonic_ns()

    def backward_weights(self, put_off: PutOff, average: bool) -> int:
        gradients = gradients_of(put_off)
        torch.autograd.backward(list(gradients), list(gradients.values()))
        return time.monotonic_ns()


class Averaged:
    """A stage under DDP."""

    every, beside = False, True

    def __init__(self, module: nn.Module, group: dist.ProcessGroup, axis: str, bucket_mb: float):
        self.module, self.axis = module, axis
        self._ddp = DistributedDataParallel(module, process_group=group, bucket_cap_mb=bucket_mb)
        self._settle_buckets()

    @property
    def bucket_bytes(self) -> int:
        return bucket_bytes(self._ddp)

    def forward(self, inputs: Tensor) -> Tensor:
        with self._ddp.no_sync():  # which backward will be the last is not known yet; `backward` says it to DDP
            return self._ddp(inputs)

    def backward(self, output: Tensor, gradient: Tensor | None, average: bool) -> int:
        if not average:
            output.backward(gradient)
            return time.monotonic_ns()
        ready_ns = [0]
        self._expect_gradients()
        # DDP waits for its buckets in a callback at the end of this backward. Ours is queued before it.
        output.register_hook(lambda _: _after_this_backward(lambda: ready_ns.__setitem__(0, time.monotonic_ns())))
        output.backward(gradient)
        return ready_ns[0]

    def backward_weights(self, put_off: PutOff, average: bool) -> int:
        gradients = gradients_of(put_off)
        if average:
            self._expect_gradients()
            # Norms and embeddings had theirs in the first half, which DDP did not watch; a zero shows it to DDP.
            for parameter in self.module.parameters():
                gradients.setdefault(parameter, torch.zeros_like(parameter))
        ready_ns = time.monotonic_ns()
        torch.autograd.backward(list(gradients), list(gradients.values()))
        return ready_ns if average else time.monotonic_ns()

    def _settle_buckets(self) -> None:
        """DDP packs its buckets anew behind its first backward, in the order in which gradients came, and with them the order of
        a sum's terms. That would be different in the first step after a restart alone, so a backward of zeros comes first."""
        ignored = self._ddp.parameters_to_ignore
        learned = [parameter for name, parameter in self.module.named_parameters()
                   if parameter.requires_grad and name not in ignored]
        self._expect_gradients()
        torch.stack([(parameter * 0).sum() for parameter in learned]).sum().backward()
        self._ddp.reducer._rebuild_buckets()
        for parameter in learned:
            parameter.grad = None

    def _expect_gradients(self) -> None:
        """What DDP does at the end of a forward that is followed by its backward at once.

        torch's own pipeline stages call it here too (torch.distributed.pipelining.stage).
        """
        self._ddp.reducer.prepare_for_backward([])


def gradients_of(put_off: PutOff) -> dict[Tensor, Tensor]:
    """The put-off gradients, by parameter."""
    gradients: dict[Tensor, Tensor] = {}
    for linear, inputs, gradient in put_off:
        gradients |= linear.parameter_gradients(inputs, gradient)
    return gradients


def _after_this_backward(callback: Callable[[], None]) -> None:
    torch.autograd.Variable._execution_engine.queue_callback(callback)


class UnequalCopies(RuntimeError):
    """Copies of the model that should be equal to the last bit are not."""


def prove_equal(parameters: Mapping[str, Tensor], group: dist.ProcessGroup) -> None:
    """UnequalCopies unless all ranks of `group` hold exactly the same parameters; every rank of it has to call."""
    names = list(parameters)
    mine = torch.stack([_digest(parameter) for parameter in parameters.values()])
    device = next(iter(parameters.values())).device
    gathered = [torch.empty_like(mine, device=device) for _ in range(group.size())]
    dist.all_gather(gathered, mine.to(device), group=group)
    ranks = dist.get_process_group_ranks(group)
    for rank, theirs in zip(ranks, gathered, strict=True):
        for name, first, other in zip(names, gathered[0], theirs, strict=True):
            if not torch.equal(first, other):
                raise UnequalCopies(f"ranks {ranks[0]} and {rank} hold different values of {name}, "
                                    "though all copies of the model should be equal")


def _digest(parameter: Tensor) -> Tensor:
    """32 bytes that are different when any bit of the parameter is."""
    values = parameter.detach().cpu().contiguous().numpy().tobytes()
    return torch.frombuffer(bytearray(hashlib.sha256(values).digest()), dtype=torch.uint8)
