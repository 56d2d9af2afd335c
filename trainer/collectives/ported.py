"""What collectives take over modelled links whose ports are shared: by several messages of one collective, and by groups
that do the same at once. Nothing here loads torch.

As `trainer.collectives.cost.seconds`, but a message waits until both of its ports have room for it, and a rank that is through
with a step goes on to the next one, as real ranks do (trainer.collectives.exchange, trainer.emulate.links).
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Generator, Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple

from trainer.collectives.cost import LinkOf, chunk_bytes
from trainer.collectives.plans import ALGORITHMS, plan_of
from trainer.collectives.plans.plan import Plan
from trainer.emulate.link_classes import LinkClass
from trainer.emulate.links import Ports, packet_bytes
from trainer.emulate.port_book import Busy, first_room
from trainer.placement import Placement, link_as_counted
from trainer.spec import JobSpec

MOST_MESSAGES = 4000  # played through, some tens of milliseconds; of more alike, so many stand for all
MOST_WEIGHED = 64  # groups that are looked at for the one that crosses most
MOST_GROUPS = 8  # that do the same at once

Job = tuple[Plan, int]  # a collective of so many bytes


class Turn(NamedTuple):
    """Messages are sent, each to a rank, of so many bytes and by a name; then what is awaited by these names has to come."""

    sends: tuple[tuple[int, float, Hashable], ...]
    awaits: tuple[Hashable, ...]


class Request(NamedTuple):
    """A turn at a moment, in seconds. Whoever asks for it goes on when all that it awaits is there."""

    at: float
    sends: tuple[tuple[int, float, Hashable], ...] = ()
    awaits: tuple[Hashable, ...] = ()


Course = Generator[Request, float, None]  # what a rank does; it hears when it can go on


class Program(NamedTuple):
    """What a rank does one after the other, from some moment on, in seconds."""

    rank: int
    begins: float
    turns: list[Turn]

    def course(self) -> Course:
        now = self.begins
        for sends, awaits in self.turns:
            now = yield Request(now, sends, awaits)


class Network:
    """A job's modelled links, on which nothing is under way yet. Ranks are the job's. `link` is what lies between two of them
    where that is known better than by the job, as by ranks whose links have been slowed."""

    def __init__(self, spec: JobSpec, link: LinkOf | None = None):
        self.spec, self.placement = spec, Placement.of(spec.grid, spec.placement)
        self.ports, self.packet_bytes = Ports(spec, self.placement), packet_bytes(spec)
        self.link = link or self._by_distance
        self._links: dict[str, LinkClass] = {}
        self.ranked: dict[Hashable, list[tuple[float, Plan]]] | None = None if link else {}  # what `ranked` found, if it holds

    def _by_distance(self, one: int, other: int) -> LinkClass:
        return self.link_at(self.placement.distance(one, other))

    def link_at(self, distance: str) -> LinkClass:
        if distance not in self._links:
            self._links[distance] = link_as_counted(self.spec, distance)
        return self._links[distance]

    def lie_of(self, groups: Sequence[Sequence[int]]) -> Hashable:
        """What a collective's time depends on, the same for groups that lie alike among servers, racks and ports."""
        seen: tuple[dict[int, int], ...] = ({}, {}, {})
        servers, racks = self.placement.servers, self.placement.racks
        return tuple(tuple((*(numbers.setdefault(one, len(numbers)) for numbers, one in zip(
            seen, (rank, servers[rank], racks[rank]), strict=True)), self.ports.of_server(rank)) for rank in group)
            for group in groups)

    def seconds(self, groups: Sequence[Sequence[int]], jobs: Sequence[Job]) -> float:
        """Until the last rank of all `groups` is through with `jobs`, one after the other, if all begin at once."""
        return max(self.played([Program(rank, 0.0, turns_of(group, place, jobs))
                                for group in groups for place, rank in enumerate(group)]))

    def played(self, programs: Sequence[Program]) -> list[float]:
        """When each of them is through, in seconds."""
        till = self.run([(program.rank, program.course()) for program in programs])
        return [max(program.begins, end) for program, end in zip(programs, till, strict=True)]

    def run(self, courses: Sequence[tuple[int, Course]]) -> list[float]:
        """When each rank's course is through. In the order of time: whoever is ready first gets a port first."""
        busy: list[Busy] = [[] for _ in range(self.ports.count)]
        lacks, till = [0] * len(courses), [0.0] * len(courses)
        arrivals: dict[tuple[int, Hashable], float] = {}
        waiting: dict[tuple[int, Hashable], int] = {}  # the course that waits for what comes to a rank by a name
        asked = [next(course, None) for _, course in courses]
        ready = [(request.at, number) for number, request in enumerate(asked) if request is not None]
        heapq.heapify(ready)
        while ready:
            now, number = heapq.heappop(ready)
            rank, course = courses[number]
            request = asked[number]
            if request is None:  # what it awaited is there
                try:
                    request = course.send(now)
                except StopIteration:
                    continue
                if request.at > now:
                    asked[number] = request
                    heapq.heappush(ready, (request.at, number))
                    continue
            asked[number], till[number] = None, now
            for target, size_bytes, name in request.sends:
                there, arrives = (target, name), self._arrival(rank, target, size_bytes, now, busy)
                if there in waiting:
                    waiter = waiting.pop(there)
                    till[waiter] = max(till[waiter], arrives)
                    lacks[waiter] -= 1
                    if not lacks[waiter]:
                        heapq.heappush(ready, (till[waiter], waiter))
                else:
                    arrivals[there] = arrives
            for name in request.awaits:
                if (rank, name) in arrivals:
                    till[number] = max(till[number], arrivals.pop((rank, name)))
                else:
                    waiting[rank, name] = number
                    lacks[number] += 1
            if not lacks[number]:
                heapq.heappush(ready, (till[number], number))
        return till

    def _arrival(self, rank: int, target: int, size_bytes: float, now: float, busy: list[Busy]) -> float:
        """When a message is there. `busy` is when each port is, from now on, and changes."""
        if target == rank:  # another thread of the same
            return now
        link = self.link(rank, target)
        lasts = size_bytes / link.bytes_per_second
        if size_bytes <= self.packet_bytes:
            return now + lasts + link.latency_seconds
        out, into = self.ports.between(rank, target)
        for port in (out, into):
            busy[port] = [span for span in busy[port] if span[1] > now]
        begins = first_room(busy[out], busy[into], now, lasts)
        for port in (out, into):
            insort(busy[port], (begins, begins + lasts))
        return begins + lasts + link.latency_seconds


def turns_of(group: Sequence[int], place: int, jobs: Sequence[Job]) -> list[Turn]:
    """What a rank of `group` does in collectives one after the other; a message without bytes is not sent."""
    turns, before = [], 0
    for plan, size_bytes in jobs:
        sizes = chunk_bytes(plan, size_bytes)
        for turn in plan.turns[place]:
            sent = sum(sizes[chunk] for chunk in turn.send.chunks) if turn.send else 0
            comes = turn.receive and sum(sizes[chunk] for chunk in turn.receive.chunks)
            key = before + turn.step
            turns.append(Turn(((group[turn.send.target], sent, key),) if turn.send and sent else (), (key,) if comes else ()))
        before += len(plan.steps)
    return turns


@lru_cache(maxsize=4)
def network_of(spec: JobSpec) -> Network:
    """One for all who ask about a job: what it knows of algorithms is found once."""
    return Network(spec)


def repeated(network: Network, groups: Sequence[Sequence[int]], plan: Plan, size_bytes: int, count: int) -> float:
    """Seconds for `count` collectives of one size in a row: of many alike, some stand for all."""
    messages = len(groups) * sum(map(len, plan.steps))
    some = max(1, min(count, MOST_MESSAGES // max(1, messages)))
    return network.seconds(groups, [(plan, size_bytes)] * some) * count / some


def together(network: Network, groups: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """The group whose ring crosses most slow links, and those that share a server's ports with it: so many as are played."""
    def cost(group: Sequence[int]) -> float:
        around = zip(group, [*group[1:], group[0]], strict=True)
        return sum(1 / network.link(one, other).bytes_per_second for one, other in around)

    worst = max(groups[:MOST_WEIGHED], key=cost)
    servers = network.placement.servers
    crossed = {servers[rank] for rank in worst}
    if len(crossed) == 1:
        return [worst]
    beside = [group for group in groups if group is not worst
              and len({servers[rank] for rank in group}) > 1 and crossed & {servers[rank] for rank in group}]
    return [worst, *beside[:MOST_GROUPS - 1]]


def ranked(network: Network, groups: Sequence[Sequence[int]], collective: str, size_bytes: int, root: int = 0,
           ) -> list[tuple[float, Plan]]:
    """Seconds and plan of each of our algorithms, the quickest first, if all `groups` do the same at once."""
    key = collective, size_bytes, root, network.lie_of(groups)
    if network.ranked is not None and key in network.ranked:
        return network.ranked[key]
    plans = [plan_of(collective, name, len(groups[0]), root) for name in ALGORITHMS[collective]]
    found = sorted(((network.seconds(groups, [(plan, size_bytes)]), plan) for plan in plans), key=lambda pair: pair[0])
    if network.ranked is not None:
        network.ranked[key] = found
    return found
