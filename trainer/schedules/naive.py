"""No pipelining: a micro-batch goes through all stages and back before the next one starts.

    stage 0  F0 .. .. B0 F1 .. .. B1
    stage 1  .. F0 B0 .. .. F1 B1 ..
"""

from __future__ import annotations

from trainer.schedules.actions import Schedule, backward, forward


def naive(stages: int, micro_batches: int) -> Schedule:
    return [
        [action for m in range(micro_batches) for action in (forward(stage, m), backward(stage, m))]
        for stage in range(stages)
    ]
