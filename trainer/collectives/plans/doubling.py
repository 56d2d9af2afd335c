"""Recursive doubling and halving: partners are 1, 2, 4 … ranks apart, and what one knows doubles in each step.

It takes a power of two. Of other numbers of ranks the odd ones of the first pairs give what they have to their
neighbour before, and get the result after (Thakur, Rabenseifner and Gropp, 2005).

Partners add the same two numbers, so all ranks' sums are equal to the last bit.
"""

from __future__ import annotations

from trainer.collectives.plans.plan import Chunks, Move, Steps, transposed


def all_reduce(ranks: int) -> Steps:
    """Recursive doubling of everything: ⌈log₂ N⌉ steps, two more where N is no power of two."""
    everything = tuple(range(ranks))
    before, actors = _fold(ranks)
    steps = [[Move(actors[place], actors[place ^ distance], everything, True) for place in range(len(actors))]
             for distance in _distances(actors)]
    if not before:
        return steps
    return [[Move(odd, even, everything, True) for even, odd in before], *steps,
            [Move(even, odd, everything) for even, odd in before]]


def all_gather(ranks: int) -> Steps:
    """Recursive doubling: 1, 2, 4 … chunks a step."""
    before, actors = _fold(ranks)
    brought: dict[int, Chunks] = {even: (even, odd) for even, odd in before}
    of_place = [brought.get(actor, (actor,)) for actor in actors]
    steps = []
    for distance in _distances(actors):
        steps.append([Move(actors[place], actors[place ^ distance], _of_block(of_place, place, distance))
                      for place in range(len(actors))])
    if not before:
        return steps
    others = [Move(even, odd, tuple(chunk for chunk in range(ranks) if chunk != odd)) for even, odd in before]
    return [[Move(odd, even, (odd,)) for even, odd in before], *steps, others]


def reduce_scatter(ranks: int) -> Steps:
    """Recursive halving: half of everything to the rank farthest away, then a quarter …"""
    return transposed(all_gather(ranks))


def halving_doubling(ranks: int) -> Steps:
    """Rabenseifner's AllReduce: as few steps as two trees, and no more traffic than a ring."""
    return reduce_scatter(ranks) + all_gather(ranks)


def barrier(ranks: int) -> Steps:
    """In step k everyone tells the rank 2ᵏ places on, and with that what it has been told: any number of ranks will do
    (Hensgen, Finkel and Manber's dissemination barrier, 1988)."""
    return [[Move(rank, (rank + 2**level) % ranks, (0,)) for rank in range(ranks)] for level in range((ranks - 1).bit_length())]


def _fold(ranks: int) -> tuple[list[tuple[int, int]], list[int]]:
    """The pairs of which one stands aside, and the ranks that are left, a power of two."""
    power = 1 << (ranks.bit_length() - 1)
    pairs = [(2 * pair, 2 * pair + 1) for pair in range(ranks - power)]
    return pairs, [even for even, _ in pairs] + list(range(2 * len(pairs), ranks))


def _distances(actors: list[int]) -> list[int]:
    return [1 << level for level in range(len(actors).bit_length() - 1)]


def _of_block(of_place: list[Chunks], place: int, distance: int) -> Chunks:
    """The chunks of the `distance` places, a block of that size, in which `place` lies."""
    first = place // distance * distance
    return tuple(chunk for chunks in of_place[first:first + distance] for chunk in chunks)
