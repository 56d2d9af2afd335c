"""Modelled links: when a message over them would arrive, with whatever else is on its way through the same ports.

A rank has a port of its own to its server's other ranks. To other servers all ranks of a server share as many
network ports as it has. A port sends one message after the other, and receives likewise; ranks on this machine keep a
common book of when each port is free, so that groups that know nothing of each other slow each other down. What fits into one
packet slips in between those of what is under way: it waits for nobody, and nobody for it.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import threading
import time
from pathlib import Path

from trainer.emulate.link_classes import NUMBER_BYTES, PACKET_BYTES, LinkClass
from trainer.emulate.moment import Moment
from trainer.placement import Placement, link_as_counted
from trainer.spec import JobSpec

_MOST_BUSY = 16  # times of a port that are told apart, each when it begins and ends in this machine's monotonic ns
_BUSY = struct.Struct(f"<{2 * _MOST_BUSY}q")

Busy = list[tuple[int, int]]


class PortBook:
    """Shared memory of one run: when each port is busy. `path` is a file that all ranks of the run open."""

    def __init__(self, path: Path, ports: int):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(self._file, max(1, ports) * _BUSY.size)  # whoever comes later changes nothing
        self._memory = mmap.mmap(self._file, max(1, ports) * _BUSY.size)
        self._lock = threading.Lock()  # a file's lock is between processes, not between threads

    def reserve(self, ports: tuple[int, ...], from_ns: int, duration_ns: int) -> int:
        """When a transfer through all `ports` that is ready at `from_ns` will have passed them, ns. It goes as soon as all of
        them are free for so long: a rank that came late to what it was to send earlier does not queue behind what is later."""
        with self._lock:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                busy = [self._busy(port) for port in ports]
                start_ns = from_ns
                for began_ns, ended_ns in sorted(span for times in busy for span in times):
                    if ended_ns <= start_ns:
                        continue
                    if began_ns >= start_ns + duration_ns:
                        break
                    start_ns = ended_ns
                for port, times in zip(ports, busy, strict=True):
                    self._keep(port, _with(times, (start_ns, start_ns + duration_ns)))
                return start_ns + duration_ns
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _busy(self, port: int) -> Busy:
        numbers = _BUSY.unpack_from(self._memory, port * _BUSY.size)
        return [span for span in zip(numbers[::2], numbers[1::2], strict=True) if span[1]]

    def _keep(self, port: int, busy: Busy) -> None:
        numbers = [number for span in busy for number in span]
        _BUSY.pack_into(self._memory, port * _BUSY.size, *numbers, *[0] * (2 * _MOST_BUSY - len(numbers)))


def _with(times: Busy, new: tuple[int, int]) -> Busy:
    """In order; times that touch are one, and the earliest ones too where there are more than can be told apart."""
    found: Busy = []
    for span in sorted([*times, new]):
        if found and span[0] <= found[-1][1]:
            found[-1] = found[-1][0], max(span[1], found[-1][1])
        else:
            found.append(span)
    while len(found) > _MOST_BUSY:
        found[:2] = [(found[0][0], found[1][1])]
    return found


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
