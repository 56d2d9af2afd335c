"""When copies are through that share their work in the older ways (trainer.splits.exchange): by a server, or everyone to
everyone. Nothing here loads torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainer.collectives.ported import Network, Program, Turn


def delivered(network: Network, mode: str, groups: Mapping[tuple[int, ...], float], ready: Mapping[int, float],
              free: list[float]) -> dict[int, float]:
    """By rank, in seconds, when it has what it needs for the next step, if its gradients were `ready` then.

    `groups` are those that share gradients, with the bytes that all of a copy's are. Ports are `free` from these moments on:
    what was sent in the step before may still be on its way, and whatever is to go through the same port waits behind it.
    """
    turns = by_server if mode == "parameter-server" else to_everyone
    programs = [Program(rank, ready[rank], turns(group, rank, size_bytes))
                for group, size_bytes in groups.items() for rank in group]
    return {program.rank: end for program, end in zip(programs, network.played(programs, free), strict=True)}


def by_server(group: Sequence[int], rank: int, size_bytes: float) -> list[Turn]:
    """The first one gets all gradients, and sends parameters when it has them; it does not wait until they are there."""
    server, *others = group
    if rank != server:
        return [Turn(((server, size_bytes, ("gradients", rank)),), ("parameters",))]
    return [Turn((), tuple(("gradients", other) for other in others)),
            Turn(tuple((other, size_bytes, "parameters") for other in others), ())]


def to_everyone(group: Sequence[int], rank: int, size_bytes: float) -> list[Turn]:
    return [Turn(((group[to], size_bytes, ("gradients", rank)),), (("gradients", group[awaited]),))
            for to, awaited in rounds(group.index(rank), len(group))]


def rounds(place: int, places: int) -> list[tuple[int, int]]:
    """To whom a copy sends and from whom it receives at a time: to the next one and from the one before, then one further."""
    return [((place + distance) % places, (place - distance) % places) for distance in range(1, places)]
