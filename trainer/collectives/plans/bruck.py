"""Bruck's algorithms: ⌈log₂ N⌉ steps for any number of ranks (Bruck et al., "Efficient algorithms for all-to-all
communications in multiport message-passing systems", 1997)."""

from __future__ import annotations

from trainer.collectives.plans.plan import Move, Steps


def all_gather(ranks: int) -> Steps:
    """In step k a rank has 2ᵏ chunks, its own and those of the ranks after it, and sends them 2ᵏ places back."""
    steps, held = [], 1
    while held < ranks:
        count = min(held, ranks - held)
        steps.append([Move(rank, (rank - held) % ranks, tuple((rank + at) % ranks for at in range(count)))
                      for rank in range(ranks)])
        held += count
    return steps


def all_to_all(ranks: int) -> Steps:
    """A chunk reaches its rank in hops of 1, 2, 4 …: in step k, all that have bit k in what is left of their way.

    Few messages for many small chunks, at the price of carrying each several times.
    """
    steps = []
    for level in range((ranks - 1).bit_length()):
        hop = 1 << level
        moves = []
        for rank in range(ranks):
            chunks = [
                source * ranks + (source + distance) % ranks
                for distance in range(ranks) if distance & hop
                for source in [(rank - distance % hop) % ranks]  # so far it came by the smaller hops
            ]
            moves.append(Move(rank, (rank + hop) % ranks, tuple(chunks)))
        steps.append(moves)
    return steps
