"""Copies of a model that learn from their own samples."""

from __future__ import annotations

from trainer.presets.kit import WATCHABLE, Preset
from trainer.spec import GridSpec, JobSpec, Perceptron, ScheduleSpec

PRESETS = (
    Preset("ddp-digits", "Data parallel, digits",
           "Four copies of a small perceptron learn to read digits; "
           "after each backward an AllReduce averages their gradients.",
           JobSpec(name="Data parallel, digits", model=Perceptron(), grid=GridSpec(dp=4),
                   schedule=ScheduleSpec(name="gpipe", micro_batches=1), pace=WATCHABLE, batch=128, steps=120)),
)
