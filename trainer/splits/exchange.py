"""How copies averaged their gradients before AllReduce. Slow, and kept to show why.

With N copies and M bytes of gradients:

- A parameter server (Li et al., "Scaling Distributed Machine Learning with the Parameter Server", 2014) gets all
  gradients, alone has the optimizer, and sends the parameters back: 2·(N−1)·M through one port.
- Everyone to everyone: each copy sends its gradients to each other, N·(N−1)·M in all, and adds up by itself. It goes in
  rounds, as MPI's pairwise exchange does (Thakur et al., "Optimization of Collective Communication Operations in MPICH",
  2005): in each of them a copy sends to one and receives from one, so that no two want to send to the same copy.

A ring's AllReduce moves 2·(N−1)·M in all as well, but an Nth of that through each port. Every sum is taken in the order
of the copies' places, so it is the same to the last bit wherever it is taken.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.collectives.delivered import rounds
from trainer.emulate.links import Links, now_ns, sleep_until
from trainer.splits.copies import Copies
from trainer.splits.data import Alone
from trainer.splits.messages import Envelope
from trainer.splits.run_clock import RunClock
from trainer.trace.frame import NONE
from trainer.trace.kinds import Kind
from trainer.trace.row import Add

SERVER = 0  # its place in the group


class Exchange:
    """Messages between the copies, each a span at either end. All ranks of the group deliver the same number of times."""

    def __init__(self, group: dist.ProcessGroup, axis: str, clock: RunClock, add: Add, links: Links | None):
        self._group, self._axis, self._clock, self._add, self._links = group, axis, clock, add, links
        self._ranks, self.place = dist.get_process_group_ranks(group), group.rank()
        self.others = [place for place in range(group.size()) if place != self.place]
        self._deliveries = 0

    def deliver(self, mine: Tensor, to: list[int], awaited: list[int], name: str, step: int) -> dict[int, Tensor]:
        """Send `mine` to some places, and wait for as much from others; all of it is under way at once.

        As between stages, a message says when it was sent, so that waiting for its sender is a WAIT and no part of
        its RECEIVE; a SEND is over when it is handed over. The numbers of deliveries tell which ends belong together.
        """
        def record(kind: Kind, start_ns: int, end_ns: int, place: int) -> None:
            said = name if self._links is None else f"{name} · {self._links.word(self._ranks[place])}"
            self._add(kind, start_ns, end_ns, step, NONE, NONE, self._ranks[place], mine.nbytes, self._deliveries, said,
                       self._axis)

        begin_ns = now_ns(self._links)
        behind_ns = time.monotonic_ns() - begin_ns
        sent = {place: self._sealed(mine, place, begin_ns) for place in to}
        arriving = {place: Envelope(tuple(mine.shape), mine.dtype, mine.device) for place in awaited}
        leaving, incoming = [], {}
        for place in self.others:
            # NCCL does what a pair exchanges in order, so of any two the first sends and the second receives first.
            if place in awaited and place < self.place:
                incoming[place] = self._group.recv([arriving[place].whole], place, 0)
            if place in to:
                start_ns = time.monotonic_ns()
                leaving.append(self._group.send([sent[place].whole], place, 0))
                record(Kind.SEND, start_ns - behind_ns, time.monotonic_ns() - behind_ns, place)
            if place in awaited and place > self.place:
                incoming[place] = self._group.recv([arriving[place].whole], place, 0)
        for place, work in incoming.items():
            asked_ns = now_ns(self._links)
            work.wait()
            left, arrives = map(float, arriving[place].stamp)
            if self._links is not None:
                arrival_ns = self._clock.to_local(int(arrives))
                sleep_until(arrival_ns)
                self._links.moment.reach(arrival_ns)
            sent_ns = self._clock.to_local(int(left))
            arrived_ns = now_ns(self._links)
            began_ns = min(max(asked_ns, sent_ns), arrived_ns)
            if began_ns > asked_ns:
                record(Kind.WAIT, asked_ns, began_ns, place)
            record(Kind.RECEIVE, began_ns, arrived_ns, place)
        for work in leaving:
            work.wait()
        self._deliveries += 1
        return {place: envelope.content for place, envelope in arriving.items()}

    def _sealed(self, content: Tensor, place: int, begin_ns: int) -> Envelope:
        envelope = Envelope(tuple(content.shape), content.dtype, content.device)
        envelope.content.copy_(content)
        envelope.stamp[0] = self._clock.to_run(begin_ns)
        if self._links is not None:
            envelope.stamp[1] = self._clock.to_run(self._links.arrival_ns(self._ranks[place], content.nbytes, begin_ns))
        return envelope

    def mean(self, mine: Tensor, theirs: Mapping[int, Tensor]) -> Tensor:
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
        self._exchange = exchange
        self._servers, self._clients = ([], exchange.others) if exchange.place == SERVER else ([SERVER], [])
        if not self._clients:
            self.owned = {}

    def complete_gradients(self, step: int) -> None:
        gradients = gradients_of(self._modules)
        mine = packed(gradients)
        theirs = self._exchange.deliver(mine, self._servers, self._clients, "gradients", step)
        if theirs:
            unpack(self._exchange.mean(mine, theirs), gradients)

    def spread(self, step: int) -> None:
        super().spread(step)
        parameters = [parameter.detach() for parameter in self._modules.parameters()]
        theirs = self._exchange.deliver(packed(parameters), self._clients, self._servers, "parameters", step)
        if theirs:
            unpack(theirs[SERVER], parameters)


class Everyone(Copies):
    """Every copy gets every other's gradients."""

    def __init__(self, modules: nn.ModuleDict, exchange: Exchange, group: dist.ProcessGroup):
        super().__init__(modules, {stage: Alone(module) for stage, module in modules.items()}, group)
        self._exchange = exchange

    def complete_gradients(self, step: int) -> None:
        gradients = gradients_of(self._modules)
        mine = packed(gradients)
        theirs: dict[int, Tensor] = {}
        for to, awaited in rounds(self._exchange.place, 1 + len(self._exchange.others)):
            theirs |= self._exchange.deliver(mine, [to], [awaited], "gradients", step)
        unpack(self._exchange.mean(mine, theirs), gradients)


def gradients_of(modules: nn.ModuleDict) -> list[Tensor]:
    return [parameter.grad for parameter in modules.parameters() if parameter.grad is not None]


def packed(tensors: list[Tensor]) -> Tensor:
    """All of them, one behind the other."""
    return torch.cat([tensor.flatten() for tensor in tensors])


def unpack(whole: Tensor, into: list[Tensor]) -> None:
    for tensor, part in zip(into, whole.split([tensor.numel() for tensor in into]), strict=True):
        tensor.copy_(part.view_as(tensor))
