"""What goes wrong in real jobs: one rank slower than the rest, and one that is lost."""

from __future__ import annotations

from trainer.emulate.orders import Fault
from trainer.presets.kit import WATCHABLE, Preset, pipeline
from trainer.spec import Gpt, GridSpec, JobSpec, ScheduleSpec

PRESETS = (
    Preset("straggler", "A straggler",
           "From step 8 on rank 2 takes half as long again for everything, and the whole pipeline goes at its pace. "
           "Look at the other ranks: what they now wait for is always the same one.",
           pipeline("A straggler", "1f1b").model_copy(update={
               "steps": 20, "faults": (Fault(kind="slow-rank", rank=2, step=8, factor=1.5),)})),
    Preset("lost-rank", "A lost rank and its restart",
           "Rank 1 is killed in step 13, and all ranks begin again from the checkpoint before step 10. Look at the gap, and at "
           "the loss: the steps done again come out as they did before, to the last bit.",
           JobSpec(name="A lost rank and its restart", model=Gpt(layers=4), grid=GridSpec(pp=2, dp=2),
                   schedule=ScheduleSpec(name="1f1b", micro_batches=4), pace=WATCHABLE, batch=32, steps=30, precision="float64",
                   checkpoint_every=5, restarts=1, faults=(Fault(kind="kill", rank=1, step=13),))),
)
