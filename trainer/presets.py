"""The gallery: jobs to start from, each a JobSpec with a sentence on what it shows."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.complaints import FieldError, SpecError
from trainer.spec import ContextSplit, Gpt, GridSpec, JobSpec, Pace, Perceptron, ScheduleSpec, SplitsSpec

WATCHABLE = Pace(kind="paced", forward_ms=20.0, backward_ms=40.0)
UNHURRIED = Pace(kind="paced", forward_ms=40.0, backward_ms=80.0)  # ranks talk inside an action: on two cores that takes time


@dataclass(frozen=True)
class Preset:
    key: str
    title: str
    shows: str
    spec: JobSpec


def _pipeline(title: str, schedule: str, chunks: int = 1, csv: str = "") -> JobSpec:
    order = ScheduleSpec.model_validate({"name": schedule, "micro_batches": 8, "chunks": chunks, "csv": csv})
    return JobSpec(name=title, model=Gpt(layers=4 * chunks), grid=GridSpec(pp=4), schedule=order, pace=WATCHABLE,
                   batch=32, steps=30)


# GPipe in two halves: a text such as one would write by hand.
TWO_FLOODS = "\n".join(
    ",".join(f"{rank}{do}{first + m}" for first in (0, 4) for do in "FB" for m in range(4)) for rank in range(4)
)


def _inside_a_stage(title: str, grid: GridSpec, splits: SplitsSpec | None = None, context: int = 32) -> JobSpec:
    return JobSpec(name=title, model=Gpt(layers=4, context=context), grid=grid, splits=splits or SplitsSpec(),
                   schedule=ScheduleSpec(name="1f1b", micro_batches=4), pace=UNHURRIED, batch=16 * grid.dp, steps=40)


PRESETS = {
    preset.key: preset
    for preset in (
        Preset("pipeline-1f1b", "Pipeline, 1F1B",
               "Four stages, eight micro-batches, one forward and one backward in turn: "
               "GPipe's bubble, but a stage holds at most four micro-batches' activations.",
               _pipeline("Pipeline, 1F1B", "1f1b")),
        Preset("pipeline-gpipe", "Pipeline, GPipe",
               "All forwards, then all backwards. The bubble is (p−1)/(m+p−1) of the step: 27.3 % here.",
               _pipeline("Pipeline, GPipe", "gpipe")),
        Preset("pipeline-naive", "Pipeline, one micro-batch at a time",
               "The layers are spread over four ranks, but only one works at any moment: three of four are idle.",
               _pipeline("Pipeline, one micro-batch at a time", "naive").model_copy(update={"steps": 10})),
        Preset("pipeline-interleaved", "Pipeline, interleaved 1F1B",
               "Every rank holds two thin stages, so the first micro-batch reaches the last rank in half the time: the bubble "
               "at both ends of a step is half of 1F1B's. Look at the messages: there are more than twice as many.",
               _pipeline("Pipeline, interleaved 1F1B", "interleaved", 2)),
        Preset("pipeline-breadth-first", "Pipeline, looped breadth-first",
               "All micro-batches go through a rank's first stage before its second one begins: GPipe with half the bubble. "
               "Look at how long the first forwards wait for their backwards: every activation is held until then.",
               _pipeline("Pipeline, looped breadth-first", "breadth-first", 2)),
        Preset("pipeline-zb-h1", "Pipeline, ZB-H1",
               "1F1B with its backwards split: the gradient that the previous stage waits for leaves first, the weights' is put "
               "off. Look at the end of a step: the later a stage, the more weights' gradients fill what was idle.",
               _pipeline("Pipeline, ZB-H1", "zb-h1")),
        Preset("pipeline-interleaved-zb", "Pipeline, interleaved zero bubble",
               "Two thin stages a rank and split backwards at once: the bubble is half of ZB-H1's. "
               "Look at the last rank, which puts off three weights' gradients until nothing else is left to do.",
               _pipeline("Pipeline, interleaved zero bubble", "interleaved-zb", 2)),
        Preset("pipeline-zb-v", "Pipeline, ZB-V",
               "The model goes down the ranks and up again, so the first rank also has the last stage. "
               "Look inside a rank: once it has begun nothing is idle; what is left is that ranks start one after the other.",
               _pipeline("Pipeline, ZB-V", "zb-v", 2)),
        Preset("pipeline-dualpipe-v", "Pipeline, DualPipeV",
               "Stages in a V again, but in its middle every rank does a forward of one way and a backward of the other. "
               "Look at the start and the end of a step: only there are backwards split.",
               _pipeline("Pipeline, DualPipeV", "dualpipe-v", 2)),
        Preset("pipeline-own", "Pipeline, a schedule of your own",
               "An order written as text, a row for each rank: GPipe in two halves of four micro-batches. Look at the middle "
               "of a step: the pipeline drains once more, the price of holding four activations a stage in place of eight.",
               _pipeline("Pipeline, a schedule of your own", "csv", csv=TWO_FLOODS)),
        Preset("pipeline-x-data", "Pipeline × data",
               "Two stages times two copies: activations travel along a pipeline, gradients are averaged between copies.",
               JobSpec(name="Pipeline × data", model=Gpt(layers=4), grid=GridSpec(pp=2, dp=2),
                       schedule=ScheduleSpec(name="1f1b", micro_batches=8), pace=WATCHABLE, batch=64, steps=30)),
        Preset("ddp-digits", "Data parallel, digits",
               "Four copies of a small perceptron learn to read digits; "
               "after each backward an AllReduce averages their gradients.",
               JobSpec(name="Data parallel, digits", model=Perceptron(), grid=GridSpec(dp=4),
                       schedule=ScheduleSpec(name="gpipe", micro_batches=1), pace=WATCHABLE, batch=128, steps=120)),
        Preset("tensor", "Tensor parallel",
               "Four ranks share every matrix of every layer, a head each. Zoom into one forward: "
               "two AllReduces a layer, one behind attention and one behind the feed-forward, and as many on the way back.",
               _inside_a_stage("Tensor parallel", GridSpec(tp=4))),
        Preset("tensor-x-pipeline", "Tensor × pipeline",
               "Two stages of two ranks each: within a stage AllReduces follow one another all through an action, "
               "between stages one message an action is enough. "
               "So tensor slices want the fastest links, and stages can do with slower ones.",
               _inside_a_stage("Tensor × pipeline", GridSpec(pp=2, tp=2))),
        Preset("three-axes", "Data × pipeline × tensor",
               "Eight ranks, two on each axis, and three rhythms: AllReduces in every layer, messages in every micro-batch, "
               "averaged gradients once a step. Pick a rank and see which neighbour it waits for in each.",
               _inside_a_stage("Data × pipeline × tensor", GridSpec(dp=2, pp=2, tp=2))),
        Preset("ring-attention", "Ring attention",
               "Four ranks have a quarter of every text, and in each layer keys and values go around all of them, three hops. "
               "In a backward count four for their gradients: they follow, grow at every rank, and have to come home.",
               _inside_a_stage("Ring attention", GridSpec(cp=4), SplitsSpec(context=ContextSplit(order="zigzag")), context=64)),
    )
}


def preset(key: str) -> Preset:
    try:
        return PRESETS[key]
    except KeyError:
        raise SpecError([FieldError("preset", key, f"there is no such preset; {', '.join(PRESETS)} would do")]) from None
