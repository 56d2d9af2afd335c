"""Carries out plans: one rank's sends and receives in one group, a span at either end of every move.

Hot path: a small collective is over in some tenths of a millisecond, so what can be known before is, and nothing is
copied that already lies in one piece. `manage.py bench collectives` watches it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from trainer.collectives.memory import Memory
from trainer.collectives.plans.plan import Move, Plan, Turn
from trainer.emulate.links import Links, sleep_until
from trainer.trace.frame import NONE
from trainer.trace.kinds import Kind
from trainer.trace.row import Add

SEGMENT_BYTES = 1 << 20  # a longer message goes in several, so that one is added up while the next is on its way
FIRST_TAG = 1 << 30  # other messages of the same group have smaller ones

Combine = Callable[[Tensor, Tensor], object]  # its second argument into its first


@dataclass(frozen=True)
class Trip:
    """Which collective of the group it is, the job's step, the group's name, when it was called, ns, and how long to wait for
    a peer."""

    sequence: int
    step: int
    axis: str
    called_ns: int
    timeout: timedelta | None = None

    @property
    def tag(self) -> int:
        return FIRST_TAG | (self.sequence & (FIRST_TAG - 1))


@dataclass
class _Message:
    """`whole` is one piece: the `views` of its chunks if there is one of them, else `scratch`."""

    peer: int
    whole: Tensor
    views: list[Tensor]
    scratch: Tensor | None
    stamp: Tensor | None  # when an emulated message arrives, ns, on its way before it
    works: list[dist.Work]

    def wait(self, timeout: timedelta | None, leave: int = 0) -> None:
        """For all works but the last `leave`. One of gloo's is for waiting once: a second time waits for another message."""
        while len(self.works) > leave:
            work = self.works.pop(0)
            work.wait(timeout) if timeout else work.wait()

    def unpack(self, combine: Combine, timeout: timedelta | None) -> None:
        """Combine what arrives with what lies where it is to be, segment by segment."""
        if self.whole is self.views[0]:
            return self.wait(timeout)
        if len(self.views) > 1:
            self.wait(timeout)
            pieces = self.whole.split([view.numel() for view in self.views])
            places: Sequence[Tensor] = self.views
        else:
            pieces, places = _segments(self.whole), _segments(self.views[0])
        for number, (place, piece) in enumerate(zip(places, pieces, strict=True)):
            self.wait(timeout, len(pieces) - 1 - number)
            combine(place, piece)


class Exchange:
    """In `group`, of which the ranks have to begin the same collectives in the same order.

    With `links` a message arrives when they say so, and its receiver's next step is taken to begin at that moment.
    """

    def __init__(self, group: dist.ProcessGroup, add: Add, links: Links | None = None):
        self.place, self.size = group.rank(), group.size()
        self.ranks = dist.get_process_group_ranks(group)
        self._backend: Any = group._get_backend(torch.device("cpu"))
        self._add, self._links = add, links
        self._spare: list[Tensor] = []  # scratch that nothing uses now
        self.until_ns = 0  # with links, when the latest was to be over

    def run(self, plan: Plan, memory: Memory, combine: Combine, trip: Trip) -> None:
        """This rank's part of `plan`; RuntimeError when a peer is gone or does not come in time."""
        free_ns = max(trip.called_ns, self.until_ns)
        names = _names(plan, self.place)
        for turn, turn_names in zip(plan.turns[self.place], names, strict=True):
            number = trip.sequence * len(plan.steps) + turn.step
            free_ns = self._turn(turn, turn_names, memory, combine, trip, number, free_ns)
        self.until_ns = free_ns

    def _turn(self, turn: Turn, names: tuple[str, str], memory: Memory, combine: Combine, trip: Trip, number: int,
              free_ns: int) -> int:
        """When this rank was through with the step, ns; with links, when it was to be."""
        start_ns = time.monotonic_ns()
        ahead_ns = 0 if self._links is None else free_ns - start_ns  # of the modelled moment, as a rule below 0
        coming = self._receive(turn.receive, memory, trip.tag)
        going = self._send(turn.send, memory, trip.tag, free_ns)
        if going is not None:
            if coming is None or _overlap(turn):  # then what is being sent is about to change
                going.wait(trip.timeout)
            sent_ns = time.monotonic_ns()
            self._record(Kind.SEND, start_ns + ahead_ns, sent_ns + ahead_ns, going, names[0], trip, number)
            start_ns = sent_ns
        if coming is not None:
            free_ns = self._take(coming, combine if turn.receive and turn.receive.reduce else Tensor.copy_, trip, free_ns)
            end_ns = time.monotonic_ns() if self._links is None else free_ns
            self._record(Kind.RECEIVE, start_ns + ahead_ns, end_ns, coming, names[1], trip, number)
        if going is not None:
            going.wait(trip.timeout)
        self._spare += [message.scratch for message in (coming, going) if message and message.scratch is not None]
        return free_ns

    def _take(self, coming: _Message, combine: Combine, trip: Trip, free_ns: int) -> int:
        if coming.stamp is None:
            coming.unpack(combine, trip.timeout)
            return free_ns
        coming.wait(trip.timeout, len(coming.works) - 1)
        arrival_ns = int(coming.stamp.item())
        coming.unpack(combine, trip.timeout)
        sleep_until(arrival_ns)
        return max(free_ns, arrival_ns)

    def _receive(self, move: Move | None, memory: Memory, tag: int) -> _Message | None:
        """Make room for what `move` brings."""
        views = memory.views(move.chunks) if move else []
        if not (move and views):
            return None
        scratch = self._scratch(views) if move.reduce or len(views) > 1 else None
        whole = views[0] if scratch is None else _like(scratch, views)
        stamp = None if self._links is None else torch.empty(1, dtype=torch.int64)
        pieces = _segments(whole) if stamp is None else (stamp, *_segments(whole))
        works = [self._backend.recv([piece], move.source, tag) for piece in pieces]
        return _Message(self.ranks[move.source], whole, views, scratch, stamp, works)

    def _send(self, move: Move | None, memory: Memory, tag: int, free_ns: int) -> _Message | None:
        views = memory.views(move.chunks) if move else []
        if not (move and views):
            return None
        scratch = self._scratch(views) if len(views) > 1 else None
        whole = views[0] if scratch is None else torch.cat(views, out=_like(scratch, views))
        stamp, peer = None, self.ranks[move.target]
        if self._links is not None:
            stamp = torch.tensor([self._links.arrival_ns(peer, whole.nbytes, free_ns)])
        pieces = _segments(whole) if stamp is None else (stamp, *_segments(whole))
        works = [self._backend.send([piece], move.target, tag) for piece in pieces]
        return _Message(peer, whole, views, scratch, stamp, works)

    def _scratch(self, views: list[Tensor]) -> Tensor:
        needed = sum(view.nbytes for view in views)
        scratch = self._spare.pop() if self._spare else None
        return scratch if scratch is not None and scratch.numel() >= needed else torch.empty(needed, dtype=torch.uint8)

    def _record(self, kind: Kind, start_ns: int, end_ns: int, message: _Message, name: str, trip: Trip, number: int) -> None:
        if self._links is not None:
            name = f"{name} · {self._links.word(message.peer)}"
        self._add(kind, start_ns, end_ns, trip.step, NONE, NONE, message.peer, message.whole.nbytes, number, name, trip.axis)


def _overlap(turn: Turn) -> bool:
    return turn.send is not None and turn.receive is not None and not set(turn.send.chunks).isdisjoint(turn.receive.chunks)


def _like(scratch: Tensor, views: list[Tensor]) -> Tensor:
    return scratch[:sum(view.nbytes for view in views)].view(views[0].dtype)


def _segments(whole: Tensor) -> Sequence[Tensor]:
    return whole.split(SEGMENT_BYTES // whole.element_size()) if whole.nbytes > SEGMENT_BYTES else (whole,)


@lru_cache(maxsize=1024)
def _names(plan: Plan, place: int) -> tuple[tuple[str, str], ...]:
    """What a rank's sends and receives are called, turn by turn: "ring 2/6 · chunk 3", the same at either end."""
    def name(turn: Turn, move: Move | None) -> str:
        if move is None:
            return ""
        chunks = f"chunk {move.chunks[0]}" if len(move.chunks) == 1 else f"{len(move.chunks)} chunks"
        return f"{plan.algorithm} {turn.step + 1}/{len(plan.steps)} · {chunks}"

    return tuple((name(turn, turn.send), name(turn, turn.receive)) for turn in plan.turns[place])
