"""When copies are through that share their work in the older ways (trainer.splits.exchange): by a server, or everyone to
everyone. All that they send is under way at once, through shared ports. Nothing here loads torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trainer.collectives.plans.plan import Plan
from trainer.collectives.ported import Network, Program, Turn, turns_of

LOSS = "loss"


def delivered(network: Network, mode: str, groups: Mapping[tuple[int, ...], float], ready: Mapping[int, float],
              loss: tuple[Plan, int], losing: Sequence[Sequence[int]], free: list[float]) -> dict[int, float]:
    """By rank, in seconds, when it has what it needs for the next step, if its gradients were `ready` then.

    `groups` are those that share gradients, with the bytes that all of a copy's are. `losing` are those that average their
    `loss` beside it, which is on its way before. Ports are `free` from these moments on: what was sent in the step before may
    still be on its way, and whatever is to go through the same port waits behind it.
    """
    programs = [Program(rank, ready[rank], turns_of(group, place, [loss], LOSS)) for group in losing
                for place, rank in enumerate(group)]
    turns = by_server if mode == "parameter-server" else to_everyone
    programs += [Program(rank, ready[rank], turns(group, rank, size_bytes))
                 for group, size_bytes in groups.items() for rank in group]
    ends = dict(ready)
    for program, end in zip(programs, network.played(programs, free), strict=True):
        ends[program.rank] = max(ends[program.rank], end)
    return ends


def by_server(group: Sequence[int], rank: int, size_bytes: float) -> list[Turn]:
    """The first one gets all gradients, and sends parameters when it has them; it does not wait until they are there."""
    server, *others = group
    if rank != server:
        return [Turn(((server, size_bytes, ("gradients", rank)),), ("parameters",))]
    return [Turn((), tuple(("gradients", other) for other in others)),
            Turn(tuple((other, size_bytes, "parameters") for other in others), ())]


def to_everyone(group: Sequence[int], rank: int, size_bytes: float) -> list[Turn]:
    others = [other for other in group if other != rank]
    return [Turn(tuple((other, size_bytes, ("gradients", rank)) for other in others),
                 tuple(("gradients", other) for other in others))]
