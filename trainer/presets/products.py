"""Products of splits."""

from __future__ import annotations

from trainer.presets.kit import TOKENS_SLOW_DOWN, WATCHABLE, Preset, inside_a_stage, over_nvlink
from trainer.spec import Gpt, GridSpec, JobSpec, Moe, ScheduleSpec

PRESETS = (
    Preset("pipeline-x-data", "Pipeline × data",
           "Two stages times two copies: activations travel along a pipeline, gradients are averaged between copies.",
           JobSpec(name="Pipeline × data", model=Gpt(layers=4), grid=GridSpec(pp=2, dp=2),
                   schedule=ScheduleSpec(name="1f1b", micro_batches=8), pace=WATCHABLE, batch=64, steps=30)),
    Preset("tensor-x-pipeline", "Tensor × pipeline",
           "Two stages of two ranks each: within a stage AllReduces follow one another all through an action, "
           "between stages one message an action is enough. "
           "So tensor slices want the fastest links, and stages can do with slower ones.",
           inside_a_stage("Tensor × pipeline", GridSpec(pp=2, tp=2))),
    Preset("experts-x-data", "Data × experts",
           "Two pairs of ranks share experts: in every layer tokens go out and back within a pair. Look at the end of a step: "
           "all four ranks average what they have in common, group dp×ep, and experts only with the same ones, group dp.",
           over_nvlink(inside_a_stage("Data × experts", GridSpec(dp=2, ep=2), model=Moe(layers=4)), TOKENS_SLOW_DOWN)),
    Preset("three-axes", "Data × pipeline × tensor",
           "Eight ranks, two on each axis, and three rhythms: AllReduces in every layer, messages in every micro-batch, "
           "averaged gradients once a step. Pick a rank and see which neighbour it waits for in each.",
           over_nvlink(inside_a_stage("Data × pipeline × tensor", GridSpec(dp=2, pp=2, tp=2)))),
)
