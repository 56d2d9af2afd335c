"""Interleaved 1F1B (Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
Megatron-LM", 2021): a rank holds several thin stages in place of a thick one.

    rank 0 holds stages 0 and 2    F0 F1 F0 F1 ..    (of stage 0, 0, 2, 2)
    rank 1 holds stages 1 and 3    .. F0 F1 F0 F1

A micro-batch goes round all ranks once for every chunk, so the first one reaches the last rank after a thin
stage each, and the bubble is 1F1B's over the number of chunks. The price: so many times the messages, and more
activations. Micro-batches go round in groups of as many as there are ranks.
"""

from __future__ import annotations

from trainer.schedules.actions import Action, Do, Schedule
from trainer.schedules.phases import one_in_turn


def interleaved(ranks: int, micro_batches: int, chunks: int) -> Schedule:
    return [
        one_in_turn(rounds(Do.FORWARD, rank, ranks, micro_batches, chunks),
                    rounds(Do.BACKWARD, rank, ranks, micro_batches, chunks),
                    ahead=(chunks - 1) * ranks + 2 * (ranks - 1 - rank))
        for rank in range(ranks)
    ]


def rounds(do: Do, rank: int, ranks: int, micro_batches: int, chunks: int) -> list[Action]:
    """All forwards, or all backwards, of a rank: for each group of micro-batches one chunk after another."""
    order = range(chunks) if do is Do.FORWARD else reversed(range(chunks))
    numbers = list(order)
    return [
        Action(do, chunk * ranks + rank, first + m)
        for first in range(0, micro_batches, ranks) for chunk in numbers for m in range(ranks)
    ]


def held(rank: int, ranks: int, micro_batches: int, chunks: int) -> int:
    """The most activations of thin stages that a rank holds at once: its warm-up and one more (Narayanan et al., 2021)."""
    return min(micro_batches * chunks, (chunks - 1) * ranks + 2 * (ranks - 1 - rank) + 1)
