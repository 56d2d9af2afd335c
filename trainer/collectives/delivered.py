"""What copies send that share their work in the older ways (trainer.splits.exchange): by a server, or everyone to everyone; and
what that takes where they are too many to play it. Nothing here loads torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from trainer.collectives.ported import Network, Turn

Groups = Mapping[tuple[int, ...], float]  # those that share gradients, with the bytes that all of a copy's are


def gradients(mode: str, group: Sequence[int], rank: int, size_bytes: float) -> list[Turn]:
    """A server gets all of them, from copies that do not wait until they are there; or everyone does, in rounds."""
    if mode == "everyone":
        return [Turn(((group[to], size_bytes, ("gradients", rank)),), (("gradients", group[awaited]),))
                for to, awaited in rounds(group.index(rank), len(group))]
    server, *others = group
    if rank == server:
        return [Turn((), tuple(("gradients", other) for other in others))]
    return [Turn(((server, size_bytes, ("gradients", rank)),), ())]


def parameters(mode: str, group: Sequence[int], rank: int, size_bytes: float) -> list[Turn]:
    """A server sends them to one copy after the other."""
    if mode == "everyone":
        return []
    server, *others = group
    if rank == server:
        return [Turn(tuple((other, size_bytes, "parameters") for other in others), ())]
    return [Turn((), ("parameters",))]


def rounds(place: int, places: int) -> list[tuple[int, int]]:
    """To whom a copy sends and from whom it receives at a time: to the next one and from the one before, then one further."""
    return [((place + distance) % places, (place - distance) % places) for distance in range(1, places)]


def exchange_seconds(network: Network, mode: str, groups: Groups) -> float:
    """What the exchange adds to a step of many copies. A test holds it to steps that are played."""
    return _of_servers(network, groups) if mode == "parameter-server" else _of_everyone(network, groups)


def _of_everyone(network: Network, groups: Groups) -> float:
    """All begin at once, so the busiest port has something to send until all is through; or a copy that shares no port waits for
    one round after the other."""
    servers, racks = network.placement.servers, network.placement.racks
    ports: dict[int, float] = {}
    longest = latency = 0.0
    for group, size_bytes in groups.items():
        at_server, at_rack = (Counter(where[rank] for rank in group) for where in (servers, racks))
        for rank in group:
            in_server, in_rack = at_server[servers[rank]], at_rack[racks[rank]]
            others = {"server": in_server - 1, "rack": in_rack - in_server, "cluster": len(group) - in_rack}
            links = {distance: network.link_at(distance) for distance, count in others.items() if count}
            longest = max(longest, sum(others[distance] * link.seconds(size_bytes) for distance, link in links.items()))
            links.pop("server", None)
            port = network.ports.network(rank)
            ports[port] = ports.get(port, 0.0) + sum(
                others[distance] * size_bytes / link.bytes_per_second for distance, link in links.items())
            latency = max(latency, *(link.latency_seconds for link in links.values()), 0.0)
    return max(longest, max(ports.values(), default=0.0) + latency)


def _of_servers(network: Network, groups: Groups) -> float:
    """Parameters go out one after the other. Of servers at one port all of the first one's do before the next one's, and a copy
    goes on when it has them of all; from then on gradients come in as parameters went out."""
    out: dict[int, list[list[float]]] = {}
    latency = 0.0
    for (server, *others), size_bytes in groups.items():
        lasts: dict[int, list[float]] = {}
        for other in others:
            link = network.link(server, other)
            lasts.setdefault(network.ports.between(server, other)[0], []).append(size_bytes / link.bytes_per_second)
            latency = max(latency, link.latency_seconds)
        for port, own in lasts.items():
            out.setdefault(port, []).append(own)
    return 2 * latency + max(sum(map(sum, of_port)) + sum(map(sum, of_port[:-1])) + max(of_port[-1]) for of_port in out.values())
