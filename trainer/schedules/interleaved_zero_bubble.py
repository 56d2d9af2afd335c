"""Interleaved zero bubble (Qi et al., "Zero Bubble Pipeline Parallelism", 2023, as torch has it, ZB1P):
interleaved 1F1B with its backwards split.

A gradient of the input comes back in half the time of a whole backward, so a rank warms up with one forward for
each rank behind it in place of two; the gradients of the weights that it puts off fill the end of the step.
"""

from __future__ import annotations

from trainer.schedules.actions import Do, Schedule
from trainer.schedules.interleaved import rounds
from trainer.schedules.phases import one_in_turn, put_off_weights


def interleaved_zero_bubble(ranks: int, micro_batches: int, chunks: int) -> Schedule:
    return [
        put_off_weights(
            one_in_turn(rounds(Do.FORWARD, rank, ranks, micro_batches, chunks),
                        rounds(Do.BACKWARD, rank, ranks, micro_batches, chunks),
                        ahead=(chunks - 1) * ranks + ranks - 1 - rank),
            lag=rank)
        for rank in range(ranks)
    ]


def held(ranks: int, micro_batches: int, chunks: int) -> int:
    """The most activations of thin stages that a rank holds: its warm-up, one more, and as many put off as it is late."""
    return min(micro_batches, ranks) * chunks
