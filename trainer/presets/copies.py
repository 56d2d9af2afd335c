"""Copies of a model that learn from their own samples."""

from __future__ import annotations

from trainer.presets.kit import UNHURRIED, WATCHABLE, Preset
from trainer.spec import DataSplit, Gpt, GridSpec, JobSpec, Pace, Perceptron, ScheduleSpec, SplitsSpec


def copies(title: str, mode: str, pace: Pace = UNHURRIED) -> JobSpec:
    """Four copies, two micro-batches each: enough to tell once a step from once a backward."""
    return JobSpec(name=title, model=Gpt(layers=4, width=64), grid=GridSpec(dp=4), pace=pace, batch=32, steps=40,
                   splits=SplitsSpec(data=DataSplit.model_validate({"mode": mode})),
                   schedule=ScheduleSpec(name="gpipe", micro_batches=2))


PRESETS = (
    Preset("ddp-digits", "Data parallel, digits",
           "Four copies of a small perceptron learn to read digits; "
           "after each backward an AllReduce averages their gradients.",
           JobSpec(name="Data parallel, digits", model=Perceptron(), grid=GridSpec(dp=4),
                   schedule=ScheduleSpec(name="gpipe", micro_batches=1), pace=WATCHABLE, batch=128, steps=120)),
    Preset("zero-1", "ZeRO-1, optimizer state in parts",
           "Each of four copies keeps a quarter of the optimizer's state. Look at the end of a step: "
           "the last backward reduce-scatters gradients, the optimizer updates a quarter, and AllGathers bring the rest.",
           copies("ZeRO-1", "zero-1")),
    Preset("zero-2", "ZeRO-2, gradients in parts as well",
           "As ZeRO-1, but what a backward found is reduce-scattered at once, so that only a quarter is kept. "
           "Count the ReduceScatters: with two micro-batches there are twice as many, the price of the memory.",
           copies("ZeRO-2", "zero-2")),
    Preset("zero-3", "ZeRO-3, parameters in parts as well",
           "No copy has the whole model: every layer is gathered before each forward and again before each backward, "
           "by torch's FSDP2. Look into a forward, which now has an AllGather a layer, and behind the optimizer: nothing there.",
           copies("ZeRO-3", "zero-3")),
    Preset("parameter-server", "A parameter server",
           "Before AllReduce: three copies send all gradients to rank 0, which alone has the optimizer and sends parameters "
           "back. Look at the other ranks' waits, which grow with every copy that is served before them.",
           copies("Parameter server", "parameter-server", WATCHABLE)),
    Preset("everyone-to-everyone", "Everyone to everyone",
           "Every copy sends its gradients to each other one and adds up by itself: twelve messages of everything a step, "
           "where a ring's AllReduce moves as much as six. Add copies, and the gap grows with their number.",
           copies("Everyone to everyone", "everyone", WATCHABLE)),
)
