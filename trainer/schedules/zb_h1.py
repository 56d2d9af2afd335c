"""ZB-H1 (Qi et al., "Zero Bubble Pipeline Parallelism", 2023): 1F1B with its backwards split.

    stage 0  F0 F1 .. I0 W0 F2 I1 W1 .. I2 W2
    stage 1  .. F0 I0 F1 I1 W0 F2 I2 W1 W2

The previous stage waits for the gradient of the input alone, and the gradients of the weights fill the end of the
step. A stage puts off as many of them as it has stages before it, so none holds more than 1F1B's first stage.
"""

from __future__ import annotations

from trainer.schedules.actions import Schedule
from trainer.schedules.one_f_one_b import one_f_one_b
from trainer.schedules.phases import put_off_weights


def zb_h1(stages: int, micro_batches: int) -> Schedule:
    return [put_off_weights(actions, lag=stage) for stage, actions in enumerate(one_f_one_b(stages, micro_batches))]


def held(stages: int, micro_batches: int) -> int:
    """The most micro-batches that any rank holds: 1F1B's first stage's (Qi et al., 2023)."""
    return min(micro_batches, stages)
