"""GPipe (Huang et al., 2019): all forwards, then all backwards.

    stage 0  F0 F1 F2 .. .. B0 B1 B2
    stage 1  .. F0 F1 F2 B0 B1 B2 ..

Every stage holds the activations of all micro-batches until its first backward.
"""

from __future__ import annotations

from trainer.schedules.actions import Schedule, backward, forward


def gpipe(stages: int, micro_batches: int) -> Schedule:
    return [
        [forward(stage, m) for m in range(micro_batches)] + [backward(stage, m) for m in range(micro_batches)]
        for stage in range(stages)
    ]
