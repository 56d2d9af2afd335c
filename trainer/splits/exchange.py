"""How copies averaged their gradients before AllReduce. Slow, and kept to show why.

With N copies and M bytes of gradients:

- A parameter server (Li et al., "Scaling Distributed Machine Learning with the Parameter Server", 2014) gets all
  gradients, alone has the optimizer, and sends the parameters back: 2·(N−1)·M through one port, while the others' idle.
- Everyone to everyone: each copy sends its gradients to each other, N·(N−1)·M in all, and adds up by itself.

A ring's AllReduce moves 2·(N−1)·M in all as well, but an Nth of that through each port. Every sum is taken in the order
of the copies' places, so it is the same to the last bit wherever it is taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.splits.copies import Copies
from trainer.splits.data import Alone
from trainer.trace.columns import Row
from trainer.trace.frame import NONE
from trainer.trace.kinds import Kind

SERVER = 0  # its place in the group


class Exchange:
    """Messages between the copies, each a span at either end. All ranks of the group deliver the same number of times."""

    def __init__(self, group: dist.ProcessGroup, axis: str, add: Callable[[Row], None]):
        self._group, self._axis, self._add = group, axis, add
        self.ranks, self.place = dist.get_process_group_ranks(group), group.rank()
        self.others = [place for place in range(group.size()) if place != self.place]
        self._deliveries = 0

    def deliver(self, sent: Mapping[int, Tensor], awaited: Mapping[int, Tensor], name: str, step: int) -> None:
        """Send what is for each place and fill what is awaited from each; all of it is under way at once.

        Spans of a lane do not overlap, so each shows what its message took beyond those before it.
        """
        ends = [(Kind.SEND, place, one) for place, one in sent.items()]
        ends += [(Kind.RECEIVE, place, one) for place, one in awaited.items()]
        since_ns = time.monotonic_ns()
        works = dist.batch_isend_irecv([
            dist.P2POp(dist.isend if kind is Kind.SEND else dist.irecv, content, self.ranks[place], self._group)
            for kind, place, content in ends
        ])
        for number, (kind, place, content) in enumerate(ends):
            works[min(number, len(works) - 1)].wait()  # NCCL makes one work of them all
            ended_ns = time.monotonic_ns()
            self._add((kind, since_ns, ended_ns, step, NONE, NONE, self.ranks[place], content.nbytes, self._deliveries,
                       name, self._axis))
            since_ns = ended_ns
        self._deliveries += 1

    def in_order(self, mine: Tensor, theirs: Mapping[int, Tensor]) -> Tensor:
        """The mean of all places' tensors, added up in the order of places."""
        by_place = {**theirs, self.place: mine}
        total = by_place[0].clone()
        for place in range(1, len(by_place)):
            total += by_place[place]
        return total / len(by_place)


class ParameterServer(Copies):
    """One copy averages, has the optimizer, and tells the others; these own nothing."""

    def __init__(self, modules: nn.ModuleDict, exchange: Exchange, group: dist.ProcessGroup):
        super().__init__(modules, {stage: Alone(module) for stage, module in modules.items()}, group)
        self._exchange, self._serves = exchange, exchange.place == SERVER
        if not self._serves:
            self.owned = {}

    def complete_gradients(self, step: int) -> None:
        parameters = list(self._modules.parameters())
        mine, name = packed(gradients_of_all(parameters)), "gradients"
        if self._serves:
            theirs = {place: torch.empty_like(mine) for place in self._exchange.others}
            self._exchange.deliver({}, theirs, name, step)
            unpack(self._exchange.in_order(mine, theirs), gradients_of_all(parameters))
        else:
            self._exchange.deliver({SERVER: mine}, {}, name, step)

    def spread(self, step: int) -> None:
        super().spread(step)
        parameters = [parameter.detach() for parameter in self._modules.parameters()]
        mine, name = packed(parameters), "parameters"
        if self._serves:
            self._exchange.deliver(dict.fromkeys(self._exchange.others, mine), {}, name, step)
        else:
            self._exchange.deliver({}, {SERVER: mine}, name, step)
            unpack(mine, parameters)


class Everyone(Copies):
    """Every copy gets every other's gradients."""

    def __init__(self, modules: nn.ModuleDict, exchange: Exchange, group: dist.ProcessGroup):
        super().__init__(modules, {stage: Alone(module) for stage, module in modules.items()}, group)
        self._exchange = exchange

    def complete_gradients(self, step: int) -> None:
        gradients = gradients_of_all(self._modules.parameters())
        mine = packed(gradients)
        theirs = {place: torch.empty_like(mine) for place in self._exchange.others}
        self._exchange.deliver(dict.fromkeys(self._exchange.others, mine), theirs, "gradients", step)
        unpack(self._exchange.in_order(mine, theirs), gradients)


def gradients_of_all(parameters: Iterable[nn.Parameter]) -> list[Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def packed(tensors: list[Tensor]) -> Tensor:
    """All of them, one behind the other."""
    return torch.cat([tensor.flatten() for tensor in tensors])


def unpack(whole: Tensor, into: list[Tensor]) -> None:
    for tensor, part in zip(into, whole.split([tensor.numel() for tensor in into]), strict=True):
        tensor.copy_(part.view_as(tensor))
