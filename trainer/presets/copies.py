"""Copies of a model that learn from their own samples."""

from __future__ import annotations

from trainer.presets.kit import ONE_EACH, OWN, TOGETHER, UNHURRIED, WATCHABLE, Preset, copies, over_nvlink
from trainer.spec import (
    DataSplit,
    Gpt,
    GridSpec,
    JobSpec,
    LinksSpec,
    Perceptron,
    ScheduleSpec,
    SplitsSpec,
)


def in_parts(title: str, mode: str) -> JobSpec:
    """Four copies, two micro-batches each: enough to tell once a step from once a backward. Their megabyte of parameters counts
    as 19, over NVLink at a thousandth of its speed, so that a gather takes milliseconds."""
    return JobSpec(name=title, model=Gpt(layers=4, width=64), grid=GridSpec(dp=4), pace=UNHURRIED, batch=32, steps=40,
                   splits=SplitsSpec(data=DataSplit.model_validate({"mode": mode})),
                   schedule=ScheduleSpec(name="gpipe", micro_batches=2), collectives=OWN,
                   links=LinksSpec(kind="modelled", size_factor=20.0), placement=TOGETHER)


PRESETS = (
    Preset("ddp-digits", "Data parallel, digits",
           "Four copies of a small perceptron learn to read digits; "
           "after each backward an AllReduce averages their gradients.",
           over_nvlink(JobSpec(name="Data parallel, digits", model=Perceptron(), grid=GridSpec(dp=4),
                               schedule=ScheduleSpec(name="gpipe", micro_batches=1), pace=WATCHABLE, batch=128, steps=120))),
    Preset("zero-1", "ZeRO-1, optimizer state in parts",
           "Each of four copies keeps a quarter of the optimizer's state. Look at the end of a step: "
           "the last backward reduce-scatters gradients, the optimizer updates a quarter, and AllGathers bring the rest.",
           in_parts("ZeRO-1", "zero-1")),
    Preset("zero-2", "ZeRO-2, gradients in parts as well",
           "As ZeRO-1, but what a backward found is reduce-scattered at once, so that only a quarter is kept. "
           "Count the ReduceScatters: with two micro-batches there are twice as many, the price of the memory.",
           in_parts("ZeRO-2", "zero-2")),
    Preset("zero-3", "ZeRO-3, parameters in parts as well",
           "No copy has the whole model: every layer is gathered before each forward and again before each backward, "
           "by torch's FSDP2. Look into a forward, which now has an AllGather a layer, and behind the optimizer: nothing there.",
           in_parts("ZeRO-3", "zero-3")),
    Preset("parameter-server", "A parameter server",
           "Before AllReduce: three copies send all gradients to rank 0, which alone has the optimizer and sends parameters "
           "back, all through one port. Look at how the others wait to be served, and compare the step with AllReduce by ring.",
           copies("Parameter server", ONE_EACH, mode="parameter-server")),
    Preset("everyone-to-everyone", "Everyone to everyone",
           "Every copy sends its gradients to each other one and adds up by itself: twelve messages of everything a step, "
           "where a ring's AllReduce moves as much as six. Add copies, and the gap grows with their number.",
           copies("Everyone to everyone", ONE_EACH, mode="everyone")),
)
