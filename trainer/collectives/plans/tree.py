"""Binomial trees with rank 0 as their root: in ⌈log₂ N⌉ steps everyone is reached, or everyone's part has come in.

Few steps, but each of everything: for small arrays over links that answer late (Thakur, Rabenseifner and Gropp,
"Optimization of collective communication operations in MPICH", 2005).
"""

from __future__ import annotations

from trainer.collectives.plans.plan import Move, Steps, transposed


def broadcast(ranks: int) -> Steps:
    everything = tuple(range(ranks))
    return [[Move(parent, child, everything) for parent, child in pairs] for pairs in _levels(ranks)]


def reduce(ranks: int) -> Steps:
    return transposed(broadcast(ranks))


def all_reduce(ranks: int) -> Steps:
    return reduce(ranks) + broadcast(ranks)


def all_gather(ranks: int) -> Steps:
    """Up the tree every rank brings what it and those below it have; down it gets what they lack."""
    up, down = [], []
    for level, pairs in enumerate(reversed(_levels(ranks))):
        below = {child: range(child, min(child + 2**level, ranks)) for _, child in pairs}
        up.append([Move(child, parent, tuple(below[child])) for parent, child in pairs])
        down.append([Move(parent, child, tuple(chunk for chunk in range(ranks) if chunk not in below[child]))
                     for parent, child in pairs])
    return up + down[::-1]


def reduce_scatter(ranks: int) -> Steps:
    return transposed(all_gather(ranks))


def barrier(ranks: int) -> Steps:
    token = [[Move(parent, child, (0,)) for parent, child in pairs] for pairs in _levels(ranks)]
    return transposed(token) + token


def _levels(ranks: int) -> list[list[tuple[int, int]]]:
    """Parents and children of each step away from the root: those that are reached double."""
    distances = [2**level for level in range((ranks - 1).bit_length())]
    return [
        [(parent, parent + distance) for parent in range(0, ranks, 2 * distance) if parent + distance < ranks]
        for distance in reversed(distances)
    ]
