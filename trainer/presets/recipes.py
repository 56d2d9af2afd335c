"""What is kept, in which precision, and how gradients become steps."""

from __future__ import annotations

from trainer.presets.kit import Preset, inside_a_stage, pipeline
from trainer.spec import GridSpec, OptimizerSpec

WITH_CARE = OptimizerSpec(warmup_steps=8, decay="cosine", weight_decay=0.01, clip_norm=1.0)

PRESETS = (
    Preset("checkpointing", "Activation checkpointing",
           "Each layer keeps its input alone and runs its forward again in the backward: memory for time. "
           "Look at a backward: it lasts three forwards, not two, and the whole step a third longer than 1F1B's.",
           pipeline("Activation checkpointing", "1f1b").model_copy(update={"checkpointing": "layer"})),
    Preset("bf16", "bf16, with a whole recipe",
           "Weights stay float32 and products are bfloat16, so the AllReduces in a forward carry half the bytes. Look at the "
           "end of a step: eight bytes in group “all” tell every rank how long the gradient of the whole model is.",
           inside_a_stage("bf16, with a whole recipe", GridSpec(dp=2, tp=2)).model_copy(
               update={"precision": "bf16", "optimizer": WITH_CARE})),
)
