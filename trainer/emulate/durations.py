"""How long each action is modelled to last. Nothing here loads torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.emulate.devices import device_seconds
from trainer.schedules.actions import Do

if TYPE_CHECKING:
    from trainer.spec import JobSpec


def durations_ms(spec: JobSpec) -> dict[Do, float]:
    """What each action of one micro-batch is modelled to last in all stages of a rank that has its even share of the layers.

    One stage takes its part of that (trainer.schedules.cuts.shares_of). Where the job gives durations, the halves of a
    backward share it equally. Under activation checkpointing a backward, or its first half, runs the forward again before.
    """
    forward, inputs, weights = _of_device(spec) if spec.pace.kind == "device" else _as_given(spec)
    again = forward if spec.checkpointing == "layer" else 0.0
    return {
        Do.FORWARD: forward,
        Do.BACKWARD: again + inputs + weights,
        Do.BACKWARD_INPUT: again + inputs,
        Do.BACKWARD_WEIGHT: weights,
    }


def _as_given(spec: JobSpec) -> tuple[float, float, float]:
    half = spec.pace.backward_ms / 2
    return spec.pace.forward_ms, half, half


def _of_device(spec: JobSpec) -> tuple[float, float, float]:
    forward, inputs, weights = (seconds * spec.pace.slow_down * 1e3 for seconds in device_seconds(spec))
    return forward, inputs, weights
