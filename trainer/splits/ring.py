"""A ring of ranks: each sends to the next and receives from the one before, and every hop is a span at either end."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from trainer.splits.peers import Peers
from trainer.trace.columns import Row
from trainer.trace.frame import NONE
from trainer.trace.kinds import Kind


class Ring:
    """The peers of `axis` in a ring. `connect` before the first hop; `step` is written into the spans.

    Every rank hops in the same order, so a hop has the same number where it is sent and where it is received.
    """

    def __init__(self, peers: Peers, axis: str):
        self.peers, self._axis = peers, axis
        self.step = NONE
        self._hops = 0

    def connect(self, add: Callable[[Row], None]) -> None:
        assert self.peers.group is not None
        ranks = dist.get_process_group_ranks(self.peers.group)
        self._next = ranks[(self.peers.place + 1) % self.peers.size]
        self._before = ranks[(self.peers.place - 1) % self.peers.size]
        self._add = add

    def hop(self, content: Tensor, name: str, tag: int) -> Hop:
        """Send `content` on and make room for what comes: the same tensor of the rank before. Hops of one `tag`
        arrive in the order in which they were sent."""
        start_ns = time.monotonic_ns()
        content, arriving = content.contiguous(), torch.empty_like(content, memory_format=torch.contiguous_format)
        works = dist.batch_isend_irecv([
            dist.P2POp(dist.isend, content, self._next, self.peers.group, tag),
            dist.P2POp(dist.irecv, arriving, self._before, self.peers.group, tag),
        ])
        number, self._hops = self._hops, self._hops + 1

        def record(kind: Kind, start_ns: int, peer: int) -> None:
            end_ns = time.monotonic_ns()
            self._add((kind, start_ns, end_ns, self.step, NONE, NONE, peer, content.nbytes, number, name, self._axis))

        record(Kind.SEND, start_ns, self._next)
        return Hop(content, arriving, works, lambda start_ns: record(Kind.RECEIVE, start_ns, self._before))


class Hop:
    """A tensor on its way. It holds on to what is sent until that has gone."""

    def __init__(self, sent: Tensor, arriving: Tensor, works: list[dist.Work], record_since: Callable[[int], None]):
        self._sent, self._arriving, self._works, self._record_since = sent, arriving, works, record_since

    def arrive(self) -> Tensor:
        """What the rank before sent. The span of receiving begins here: before, nobody waited for it."""
        start_ns = time.monotonic_ns()
        for work in self._works:
            work.wait()
        self._record_since(start_ns)
        return self._arriving
