"""Expert parallelism: ranks that share experts are copies of the model in all else, and each has some of every layer's.

A token's vector goes to the rank of each expert that its router chose and what the expert made of it comes back: two
all-to-alls forward and two backward a layer (Lepikhin et al., "GShard", 2020). What travels are an expert's slots, full
or not, so that every rank knows beforehand how much comes.

An expert sees the samples of all ranks that share it, so its gradient is a sum over their copies already. It lacks only
those of other groups of copies; DDP is told to leave it alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from trainer.grid import Address, averaging_axes, expert_axes
from trainer.models.gpt import FeedForward
from trainer.models.mixture import Mixture
from trainer.spec import JobSpec
from trainer.splits.all_to_all import exchange
from trainer.splits.data import prove_equal
from trainer.splits.peers import Peers
from trainer.splits.tensor import sum_gradients


class ExpertSplit:
    """One rank's experts, and what the routers of its stages chose. Ranks with the same experts, of other samples or
    other tokens, are `_twins`; `_copies` are all that look at other samples or tokens."""

    def __init__(self, spec: JobSpec, address: Address):
        grid, self._spec = spec.grid, spec
        self._peers = Peers(grid.ep, address.ep)
        self._twins = Peers(grid.dp * grid.cp * spec.ways, 0)
        self._copies = Peers(spec.averaging_ranks, 0)
        self._mixtures: list[Mixture] = []
        self._tallies = torch.empty(0)  # of each mixture, in the last step, over all copies

    def split(self, module: nn.Sequential) -> None:
        """Keep this rank's experts of a whole stage."""
        found, peers = mixtures(module), self._peers
        self._mixtures += found
        for mixture in found:
            mixture.part_of_loss = self._spec.ways / self._spec.schedule.micro_batches
            if peers.size > 1:
                keep(mixture.experts, peers)
                mixture.send_out, mixture.bring_back = partial(send_out, peers=peers), partial(bring_back, peers=peers)
        if peers.size > 1:
            DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, list(expert_parameters(module)))

    def connect(self, groups: dict[str, dist.ProcessGroup]) -> None:
        """`groups` by axis."""
        self._peers.group, self._twins.group = groups.get("ep"), groups.get(expert_axes(self._spec))
        self._copies.group = groups.get(averaging_axes(self._spec))

    def complete_gradients(self) -> None:
        """After the last backward: the mean over all copies of what they ask of this rank's experts, and the sum of
        what their routers chose."""
        if self._mixtures:
            tallies = torch.stack([mixture.take() for mixture in self._mixtures])
            self._tallies = tallies if self._copies.group is None else self._copies.all_reduce(tallies)
        if self._peers.size == 1:
            return
        parameters = [parameter for mixture in self._mixtures for parameter in mixture.experts.parameters()]
        if self._twins.group is not None:
            sum_gradients(parameters, self._twins)
        for parameter in parameters:
            assert parameter.grad is not None
            parameter.grad.div_(self._copies.size)

    def count(self, counter: Callable[[str, float, int, int], None], step: int, at_ns: int) -> None:
        """What all copies' routers chose in `step`."""
        for mixture, (*tokens, penalty) in zip(self._mixtures, self._tallies.tolist(), strict=True):
            experts = len(tokens) // 2
            for expert in range(experts):
                counter(f"expert_load/{mixture.layer}/{expert}", tokens[expert], step, at_ns)
                counter(f"expert_dropped/{mixture.layer}/{expert}", tokens[experts + expert], step, at_ns)
            counter(f"expert_penalty/{mixture.layer}", penalty / self._copies.size, step, at_ns)

    def prove_equal(self, modules: nn.Module) -> bool:
        """Whether other ranks have the same experts; UnequalCopies if they are not equal."""
        if self._peers.size == 1 or self._twins.group is None:
            return False
        prove_equal(expert_parameters(modules), self._twins.group)
        return True


def mixtures(module: nn.Module) -> list[Mixture]:
    return [part for part in module.modules() if isinstance(part, Mixture)]


def expert_parameters(module: nn.Module) -> dict[str, nn.Parameter]:
    """Those that ranks along the expert axis do not have in common, by name."""
    own = {parameter for mixture in mixtures(module) for parameter in mixture.experts.parameters()}
    return {name: parameter for name, parameter in module.named_parameters() if parameter in own}


def keep(experts: FeedForward, peers: Peers) -> None:
    """Of all experts side by side, those of this rank's place."""
    for linear in (experts.widen, experts.narrow):
        linear.weight = nn.Parameter(linear.weight.detach().chunk(peers.size)[peers.place].clone())
        linear.bias = nn.Parameter(linear.bias.detach().chunk(peers.size)[peers.place].clone())


def send_out(slots: Tensor, peers: Peers) -> Tensor:
    """Slots of all experts (experts, slots, width) to those of this rank's experts, of all ranks, one behind the other."""
    by_source = exchange(slots.unflatten(0, (peers.size, -1)), peers)
    return by_source.transpose(0, 1).flatten(1, 2)


def bring_back(made: Tensor, peers: Peers) -> Tensor:
    """The way of `send_out` back."""
    by_source = made.unflatten(1, (peers.size, -1)).transpose(0, 1)
    return exchange(by_source, peers).flatten(0, 1)
