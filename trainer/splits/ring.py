"""A ring of ranks: each sends to the next and receives from the one before, and every hop is a span at either end."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from trainer.emulate.links import Links, now_ns, sleep_until
from trainer.splits.peers import Peers
from trainer.trace.frame import NONE
from trainer.trace.kinds import Kind
from trainer.trace.row import Add


class Ring:
    """The peers of `axis` in a ring. `connect` before the first hop; `step` is written into the spans.

    Every rank hops in the same order, so a hop has the same number where it is sent and where it is received.
    """

    def __init__(self, peers: Peers, axis: str):
        self.peers, self._axis = peers, axis
        self.step = NONE
        self._hops = 0

    def connect(self, add: Add, links: Links | None = None) -> None:
        assert self.peers.group is not None
        ranks = dist.get_process_group_ranks(self.peers.group)
        self._next = ranks[(self.peers.place + 1) % self.peers.size]
        self._before = ranks[(self.peers.place - 1) % self.peers.size]
        self._add, self._links = add, links

    def hop(self, content: Tensor, name: str, tag: int) -> Hop:
        """Send `content` on and make room for what comes: the same tensor of the rank before. Hops of one `tag`
        arrive in the order in which they were sent."""
        start_ns = now_ns(self._links)
        content, arriving = content.contiguous(), torch.empty_like(content, memory_format=torch.contiguous_format)
        pairs, arrives = [(content, arriving)], None
        if self._links is not None:
            arrives = torch.empty(1, dtype=torch.int64)
            pairs.insert(0, (torch.tensor([self._links.arrival_ns(self._next, content.nbytes, start_ns)]), arrives))
        works = dist.batch_isend_irecv([
            operation for sent, got in pairs for operation in (
                dist.P2POp(dist.isend, sent, self._next, self.peers.group, tag),
                dist.P2POp(dist.irecv, got, self._before, self.peers.group, tag),
            )
        ])
        number, self._hops = self._hops, self._hops + 1

        def record(kind: Kind, start_ns: int, peer: int) -> None:
            end_ns = now_ns(self._links)
            said = name if self._links is None else f"{name} · {self._links.word(peer)}"
            self._add(kind, start_ns, end_ns, self.step, NONE, NONE, peer, content.nbytes, number, said, self._axis)

        record(Kind.SEND, start_ns, self._next)
        return Hop(pairs, arrives, works, self._links, lambda start_ns: record(Kind.RECEIVE, start_ns, self._before))


class Hop:
    """A tensor on its way. It holds on to what is sent until that has gone.

    `pairs` are what is sent and what comes, the content last; `arrives` is when it does over modelled `links`, ns.
    """

    def __init__(self, pairs: list[tuple[Tensor, Tensor]], arrives: Tensor | None, works: list[dist.Work], links: Links | None,
                 record_since: Callable[[int], None]):
        self._pairs, self._arrives, self._works, self._links = pairs, arrives, works, links
        self._record_since = record_since

    def arrive(self) -> Tensor:
        """What the rank before sent. The span of receiving begins here: before, nobody waited for it."""
        start_ns = now_ns(self._links)
        for work in self._works:
            work.wait()
        if self._links is not None and self._arrives is not None:
            arrival_ns = int(self._arrives.item())
            sleep_until(arrival_ns)
            self._links.moment.reach(arrival_ns)
        self._record_since(start_ns)
        return self._pairs[-1][1]
