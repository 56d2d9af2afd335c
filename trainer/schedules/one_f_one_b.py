"""1F1B (PipeDream-Flush, Narayanan et al., 2021): one forward and one backward in turn.

    stage 0  F0 F1 .. B0 F2 B1 .. B2
    stage 1  .. F0 B0 F1 B1 F2 B2 ..

The bubble is GPipe's, but a stage holds no more activations than there are stages behind it, itself included.
"""

from __future__ import annotations

from trainer.schedules.actions import Schedule, backward, forward
from trainer.schedules.phases import one_in_turn


def one_f_one_b(stages: int, micro_batches: int) -> Schedule:
    return [
        one_in_turn([forward(stage, m) for m in range(micro_batches)],
                    [backward(stage, m) for m in range(micro_batches)],
                    ahead=stages - 1 - stage)
        for stage in range(stages)
    ]


def held(rank: int, stages: int, micro_batches: int) -> int:
    """The most micro-batches whose activations a rank holds at once (Narayanan et al., 2021)."""
    return min(micro_batches, stages - rank)
