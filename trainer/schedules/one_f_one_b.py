"""1F1B (PipeDream-Flush, Narayanan et al., 2021): one forward and one backward in turn.

    stage 0  F0 F1 .. B0 F2 B1 .. B2
    stage 1  .. F0 B0 F1 B1 F2 B2 ..

The bubble is GPipe's, but a stage holds no more activations than there are stages behind it, itself included.
"""

from __future__ import annotations

from trainer.schedules.actions import Action, Schedule, backward, forward


def one_f_one_b(stages: int, micro_batches: int) -> Schedule:
    return [_stage(stage, stages, micro_batches) for stage in range(stages)]


def _stage(stage: int, stages: int, micro_batches: int) -> list[Action]:
    ahead = min(micro_batches, stages - 1 - stage)
    warm_up = [forward(stage, m) for m in range(ahead)]
    steady = [
        action for m in range(micro_batches - ahead) for action in (forward(stage, ahead + m), backward(stage, m))
    ]
    cool_down = [backward(stage, m) for m in range(micro_batches - ahead, micro_batches)]
    return warm_up + steady + cool_down
