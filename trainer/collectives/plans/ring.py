"""Rings: every rank sends to the next and receives from the one before, all at once and all the time.

Nobody sends more than anybody else, which is why large arrays go this way: an AllReduce is N − 1 steps of adding
up and N − 1 of handing round, of one chunk each (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009).
"""

from __future__ import annotations

from trainer.collectives.plans.plan import Move, Steps


def all_reduce(ranks: int) -> Steps:
    return _add_up(ranks, 0) + _hand_round(ranks, 1)


def reduce_scatter(ranks: int) -> Steps:
    """One chunk behind the AllReduce's first half, so that each rank ends with the chunk of its own number."""
    return _add_up(ranks, -1)


def all_gather(ranks: int) -> Steps:
    return _hand_round(ranks, 0)


def broadcast(ranks: int) -> Steps:
    """From rank 0 along the ring, as many chunks as ranks behind one another."""
    return [
        [Move(rank, rank + 1, (step - rank,)) for rank in range(ranks - 1) if 0 <= step - rank < ranks]
        for step in range(2 * ranks - 2)
    ]


def all_to_all(ranks: int) -> Steps:
    """Each chunk goes straight to its rank: in step k to the one k + 1 places on. Chunk s·N + d is from s for d."""
    return [
        [Move(rank, to, (rank * ranks + to,)) for rank in range(ranks) for to in [(rank + step + 1) % ranks]]
        for step in range(ranks - 1)
    ]


def barrier(ranks: int) -> Steps:
    """A token goes round twice: once to learn that all have come, once to say so."""
    return [[Move(rank % ranks, (rank + 1) % ranks, (0,))] for rank in range(2 * ranks - 1 if ranks > 1 else 0)]


def _add_up(ranks: int, first: int) -> Steps:
    return [
        [Move(rank, (rank + 1) % ranks, ((rank + first - step) % ranks,), True) for rank in range(ranks)]
        for step in range(ranks - 1)
    ]


def _hand_round(ranks: int, first: int) -> Steps:
    return [
        [Move(rank, (rank + 1) % ranks, ((rank + first - step) % ranks,)) for rank in range(ranks)]
        for step in range(ranks - 1)
    ]
