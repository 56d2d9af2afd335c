"""Modelled links: when a message over them would arrive, with whatever else is on its way through the same ports.

A rank has a port of its own to its server's other ranks. To other servers all ranks of a server share as many
network ports as it has. A port sends one message after the other, and receives likewise; ranks on this machine keep a
common book of when each port is free, so that groups that know nothing of each other slow each other down. What fits into one
packet slips in between those of what is under way: it waits for nobody, and nobody for it.
"""

from __future__ import annotations

import time
from pathlib import Path

from trainer.emulate.link_classes import NUMBER_BYTES, PACKET_BYTES, LinkClass
from trainer.emulate.moment import Moment
from trainer.emulate.port_book import PortBook
from trainer.placement import Placement, link_as_counted
from trainer.spec import JobSpec


class Ports:
    """The numbers of ports: for each rank out and in within its server, for each server's network ports out and in."""

    def __init__(self, spec: JobSpec, placement: Placement):
        self._placement, self._per_server = placement, spec.links.ports_per_server
        self._ranks = len(placement.servers)
        self.count = 2 * (self._ranks + (max(placement.servers) + 1) * self._per_server)
        at_server: dict[int, int] = {}
        self._local = []  # each rank's place among those of its server
        for server in placement.servers:
            self._local.append(at_server.get(server, 0))
            at_server[server] = self._local[-1] + 1

    def between(self, source: int, target: int) -> tuple[int, int]:
        """The port that `source` sends by and the one that `target` receives by."""
        if self._placement.distance(source, target) == "server":
            return 2 * source, 2 * target + 1
        return 2 * self.network(source), 2 * self.network(target) + 1

    def of_server(self, rank: int) -> int:
        """Which of its server's network ports it has."""
        return self._local[rank] % self._per_server

    def network(self, rank: int) -> int:
        """The network port by which it leaves its server."""
        return self._ranks + self._placement.servers[rank] * self._per_server + self.of_server(rank)


def packet_bytes(spec: JobSpec) -> float:
    """A payload of so many bytes fits into one packet. A lone number does, such as the loss: it is one of a larger model too."""
    return max(NUMBER_BYTES, PACKET_BYTES / spec.links.size_factor)


class Links:
    """The links of `rank` in a job whose `links.kind` is modelled. `book` is where the job's ranks keep their ports. What the
    rank sends leaves it at its `moment`."""

    def __init__(self, spec: JobSpec, rank: int, book: Path, moment: Moment):
        self._rank, self.moment = rank, moment
        self.spec, self._placement = spec, Placement.of(spec.grid, spec.placement)
        self._ports = Ports(spec, self._placement)
        self._book = PortBook(book, self._ports.count)
        self._packet_bytes = packet_bytes(spec)
        self.slowed: dict[tuple[int, int | None], float] = {}  # by two ranks, or one and None for all of its links

    @property
    def words(self) -> str:
        links = self.spec.links
        return f"modelled, {links.slow_down:g} times slower; sizes count {links.size_factor:g} times"

    def as_counted(self, source: int, target: int) -> LinkClass:
        """The link as a payload's bytes see it: slowed down, by faults as well, and of sizes that count for more."""
        link, slower = link_as_counted(self.spec, self._placement.distance(source, target)), self._slowness(source, target)
        return LinkClass(link.word, link.latency_seconds * slower, link.bytes_per_second / slower)

    def _slowness(self, source: int, target: int) -> float:
        factor = 1.0
        for (rank, peer), slower in self.slowed.items():
            ends = {source, target}
            if rank in ends and (peer is None or {rank, peer} == ends):
                factor *= slower
        return factor

    def word(self, peer: int) -> str:
        return f"emulated {self.as_counted(self._rank, peer).word}"

    def arrival_ns(self, target: int, size_bytes: int, from_ns: int) -> int:
        """When `size_bytes` that are ready at `from_ns` will be at rank `target`: from now on they are on their way."""
        link = self.as_counted(self._rank, target)
        passing_ns = round(size_bytes / link.bytes_per_second * 1e9)
        if size_bytes <= self._packet_bytes:
            passed_ns = from_ns + passing_ns
        else:
            passed_ns = self._book.reserve(self._ports.between(self._rank, target), from_ns, passing_ns)
        return passed_ns + round(link.latency_seconds * 1e9)


def links_of(spec: JobSpec, rank: int, folder: Path, moment: Moment) -> Links | None:
    """None where links are real."""
    return Links(spec, rank, folder / "ports", moment) if spec.links.kind == "modelled" else None


def now_ns(links: Links | None) -> int:
    """The rank's moment where its links are modelled; else now."""
    return time.monotonic_ns() if links is None else links.moment.ns


def sleep_until(moment_ns: int) -> None:
    left_ns = moment_ns - time.monotonic_ns()
    if left_ns > 0:
        time.sleep(left_ns * 1e-9)
