"""What the launch form asks, in its order and words."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.runs.form_fields import Field


@dataclass(frozen=True)
class Section:
    key: str
    title: str
    fields: tuple[Field, ...]


SECTIONS = (
    Section("model", "Model", (
        Field("model.name", "Kind", options={"gpt": "GPT, learns text byte by byte", "perceptron": "Perceptron, reads digits"}),
        Field("model.gpt.layers", "Layers", "A pipeline's stages divide them."),
        Field("model.gpt.width", "Width", "Numbers that stand for one token."),
        Field("model.gpt.heads", "Heads", "They divide the width."),
        Field("model.gpt.context", "Context", "Bytes a sample holds.", "bytes"),
        Field("model.perceptron.hidden_layers", "Hidden layers", "One more linear layer follows; stages divide them all."),
        Field("model.perceptron.width", "Width", "Neurons of a hidden layer."),
    )),
    Section("grid", "Grid", (
        Field("grid.pp", "Pipeline stages", "So many ranks, each with its share of the layers."),
        Field("grid.dp", "Data copies", "Each copy learns from its share of the batch."),
        Field("grid.tp", "Tensor slices", "Every matrix is cut into so many; a slice has whole heads."),
        Field("grid.cp", "Context parts", "Every sequence is cut into so many."),
    )),
    Section("splits", "Inside a stage", (
        Field("splits.tensor.sequence_parallel", "Sequence parallel",
              "Between its matrices a tensor slice keeps its stretch of the sequence alone."),
        Field("splits.context.attention", "Attention between parts", options={
            "ring": "Ring: keys and values travel around",
            "all_to_all": "All-to-all: a part of the heads each",
        }),
        Field("splits.context.order", "Order of tokens", options={
            "contiguous": "Contiguous: one stretch a part",
            "zigzag": "Zigzag: a piece from either end",
        }),
    )),
    Section("schedule", "Schedule", (
        Field("schedule.name", "Order of work", options={
            "1f1b": "1F1B: a forward and a backward in turn",
            "gpipe": "GPipe: all forwards, then all backwards",
            "naive": "Naive: one micro-batch at a time",
            "interleaved": "Interleaved 1F1B: several stages a rank",
            "breadth-first": "Looped breadth-first: GPipe with several stages a rank",
            "zb-h1": "ZB-H1: 1F1B with weights put off into the bubble",
            "interleaved-zb": "Interleaved zero bubble: both at once",
            "zb-v": "ZB-V: stages in a V, no rank waits",
            "dualpipe-v": "DualPipeV: a V that works both ways",
            "csv": "Your own, as text",
        }),
        Field("schedule.micro_batches", "Micro-batches", "Each copy's share of a batch is cut into so many."),
        Field("schedule.chunks", "Stages a rank", "1, but 2 in a V and 2 or more where stages interleave."),
        Field("schedule.layers", "Layers of each stage", "Such as 1, 1, 2, 4; left empty, all have equally many."),
        Field("schedule.csv", "Your schedule", "A row for each rank, a cell for each action: 0F0,0F1,0B0 is stage, "
              "F, B, I or W, and micro-batch, as torch writes them.", lines=6, schedule="csv"),
        Field("schedule.split_backward", "Split backward", "The weights' gradient becomes an action of its own."),
    )),
    Section("pace", "Pace", (
        Field("pace.kind", "Pace", options={"real": "Real: nothing is slowed", "paced": "Paced: every action takes a set time"}),
        Field("pace.forward_ms", "Forward", "Of one stage and micro-batch.", "ms"),
        Field("pace.backward_ms", "Backward", "Both gradients together.", "ms"),
    )),
    Section("training", "Training", (
        Field("batch", "Batch", "Samples a step, over all copies."),
        Field("steps", "Steps"),
        Field("precision", "Precision", "Under bf16 weights stay float32.", options={
            "float32": "float32", "float64": "float64", "bf16": "bf16: products in bfloat16",
        }),
        Field("checkpointing", "Checkpointing", "A backward runs its forward again.", options={
            "none": "None", "layer": "Layer by layer",
        }),
        Field("seed", "Seed", "The same seed gives the same run."),
    )),
    Section("recipe", "Recipe", (
        Field("optimizer.name", "Optimizer", options={"adamw": "AdamW", "sgd": "SGD"}),
        Field("optimizer.decay", "Decay", options={"none": "None", "linear": "Linear", "cosine": "Cosine"}),
        Field("optimizer.learning_rate", "Learning rate"),
        Field("optimizer.final_share", "Final share", "Of the rate, at the last step of a decay."),
        Field("optimizer.warmup_steps", "Warm-up", "So many steps before the full rate."),
        Field("optimizer.weight_decay", "Weight decay"),
        Field("optimizer.clip_norm", "Longest gradient", "Of the whole model; 0 clips none."),
    )),
    Section("run", "Run", (
        Field("name", "Name", "Left empty, the job's shape is its name."),
        Field("device", "Device", options={"cpu": "CPU", "cuda": "GPU (CUDA)"}),
        Field("timeout_seconds", "Time-out", "How long a rank waits for another before it gives up.", "s"),
    )),
)
FIELDS = {one.name: one for section in SECTIONS for one in section.fields}
