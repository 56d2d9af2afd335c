"""How long each action is modelled to last. Nothing here loads torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.schedules.actions import Do

if TYPE_CHECKING:
    from trainer.spec import JobSpec


def durations_ms(spec: JobSpec) -> dict[Do, float]:
    """What each action of one micro-batch is modelled to last in all stages of a rank that has its even share of the layers.

    One stage takes its part of that (trainer.schedules.cuts.shares_of). The halves of a backward share it equally.
    Under activation checkpointing a backward, or its first half, runs the forward again before.
    """
    forward, half = spec.pace.forward_ms, spec.pace.backward_ms / 2
    again = forward if spec.checkpointing == "layer" else 0.0
    return {
        Do.FORWARD: forward,
        Do.BACKWARD: again + spec.pace.backward_ms,
        Do.BACKWARD_INPUT: again + half,
        Do.BACKWARD_WEIGHT: half,
    }
