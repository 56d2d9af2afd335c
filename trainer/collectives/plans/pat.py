"""Parallel aggregated trees, as NCCL has them since 2.23: every rank is the root of a binomial tree, all trees run at
once, and what goes the same way in the same step goes together.

⌈log₂ N⌉ steps for any number of ranks, as Bruck's, but the farthest hop comes first and carries a single chunk, and
the nearest carries half of all: little traffic where links are long, and little to keep on the way.
"""

from __future__ import annotations

from trainer.collectives.plans.plan import Move, Steps, transposed


def all_gather(ranks: int) -> Steps:
    """Of hops … 4, 2, 1: before the hop d a rank has the chunks of ranks 0, 2d, 4d … places before it."""
    steps = []
    for level in reversed(range((ranks - 1).bit_length())):
        hop = 1 << level
        steps.append([
            Move(rank, (rank + hop) % ranks, tuple((rank - back) % ranks for back in range(0, ranks - hop, 2 * hop)))
            for rank in range(ranks)
        ])
    return steps


def reduce_scatter(ranks: int) -> Steps:
    return transposed(all_gather(ranks))
