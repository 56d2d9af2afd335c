"""What the launch form asks, in its order and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dashboard.runs.form_fields import Field
from trainer.emulate.devices import DEVICES
from trainer.emulate.link_classes import CLASSES


@dataclass(frozen=True)
class Section:
    """`folds`: closed as long as all its fields are as they come, since most jobs leave them so."""

    key: str
    title: str
    fields: tuple[Field, ...]
    folds: bool = False


_ALGORITHMS = {
    "backend": "The backend's own", "auto": "Quickest by α, β", "ring": "Ring", "tree": "Tree",
    "recursive-doubling": "Recursive doubling", "recursive-halving": "Recursive halving",
    "halving-doubling": "Halving, then doubling", "bruck": "Bruck", "pat": "PAT: parallel aggregated trees",
}
_LINKS = {key: f"{link.word}, {link.bytes_per_second / 1e9:g} GB/s" for key, link in CLASSES.items()}


def _choice(name: str, label: str, words: Mapping[str, str], help: str = "") -> Field:
    """A field whose choices have their words in a list that several fields share."""
    choices = dict(Field(name, label).choices)
    return Field(name, label, help, options={choice: words[choice] for choice in choices})


def _transformer(kind: str) -> tuple[Field, ...]:
    return (
        Field(f"model.{kind}.layers", "Layers", "A pipeline's stages divide them."),
        Field(f"model.{kind}.width", "Width", "Numbers that stand for one token."),
        Field(f"model.{kind}.heads", "Heads", "They divide the width."),
        Field(f"model.{kind}.context", "Context", "Bytes a sample holds.", "bytes"),
    )


SECTIONS = (
    Section("model", "Model", (
        Field("model.name", "Kind", options={
            "gpt": "GPT, learns text byte by byte",
            "moe": "GPT with experts, a few for each token",
            "perceptron": "Perceptron, reads digits",
        }),
        *_transformer("gpt"),
        *_transformer("moe"),
        Field("model.moe.experts", "Experts", "Of every layer; ranks divide them."),
        Field("model.moe.top_k", "Experts a token", "So many as its router scores highest; they are blended."),
        Field("model.moe.capacity_factor", "Capacity factor",
              "Room of an expert, as a multiple of an equal load. What finds none is dropped."),
        Field("model.moe.balance", "Balance", "How much the penalty on uneven routers counts; 0 lets them have favourites."),
        Field("model.perceptron.hidden_layers", "Hidden layers", "One more linear layer follows; stages divide them all."),
        Field("model.perceptron.width", "Width", "Neurons of a hidden layer."),
    )),
    Section("grid", "Grid", (
        Field("grid.pp", "Pipeline stages", "So many ranks, each with its share of the layers."),
        Field("grid.dp", "Data copies", "Each copy learns from its share of the batch."),
        Field("grid.ep", "Expert parts", "So many ranks share a layer's experts; each learns from its own samples."),
        Field("grid.tp", "Tensor slices", "Every matrix is cut into so many; a slice has whole heads."),
        Field("grid.cp", "Context parts", "Every sequence is cut into so many."),
    )),
    Section("data", "Between copies", (
        Field("splits.data.mode", "What copies share", "Without effect where every stage is on one rank alone.", options={
            "ddp": "DDP: gradients averaged in buckets",
            "zero-1": "ZeRO-1: optimizer state in parts",
            "zero-2": "ZeRO-2: gradients in parts as well",
            "zero-3": "ZeRO-3: parameters in parts as well",
            "parameter-server": "Parameter server: one averages and updates",
            "everyone": "Everyone to everyone: each adds up all",
        }),
        Field("splits.data.bucket_mb", "Bucket", "Of DDP: how much gradient one AllReduce takes.", "MiB"),
    ), folds=True),
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
    ), folds=True),
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
            "dualpipe": "DualPipe: from both ends, every stage there twice",
            "csv": "Your own, as text",
        }),
        Field("schedule.micro_batches", "Micro-batches",
              "Each copy's share of a batch is cut into so many; under DualPipe half go each way."),
        Field("schedule.chunks", "Stages a rank",
              "1, but 2 in a V and 2 or more where stages interleave. Of each copy: DualPipe has two of them."),
        Field("schedule.layers", "Layers of each stage", "Such as 1, 1, 2, 4; left empty, all have equally many."),
        Field("schedule.csv", "Your schedule", "A row for each rank, a cell for each action: 0F0,0F1,0B0 is stage, "
              "F, B, I or W, and micro-batch, as torch writes them.", lines=6, schedule="csv"),
        Field("schedule.split_backward", "Split backward", "The weights' gradient becomes an action of its own."),
    )),
    Section("pace", "Pace", (
        Field("pace.kind", "Pace", options={"real": "Real: nothing is slowed", "paced": "Paced: every action takes a set time",
                                             "device": "Device: what a card would take, slowed down"}),
        Field("pace.forward_ms", "Forward", "Of one stage and micro-batch.", "ms"),
        Field("pace.backward_ms", "Backward", "Both gradients together.", "ms"),
        Field("pace.device", "Card", "Peak rates as its maker states them, 40 % of them reached.", options={
            key: device.word for key, device in DEVICES.items()}),
        Field("pace.slow_down", "Slower", "So that one can watch: every action takes so many times as long.", "times"),
        Field("pace.memory_mb", "Card's memory", "What ranks hold is held against it; 0 is the named card's own.", "MB"),
    )),
    Section("collectives", "Collectives", (
        *(_choice(f"collectives.{name}", label, _ALGORITHMS) for name, label in (
            ("all_reduce", "AllReduce"), ("all_gather", "AllGather"), ("reduce_scatter", "ReduceScatter"),
            ("all_to_all", "AllToAll"), ("broadcast", "Broadcast"), ("reduce", "Reduce"), ("barrier", "Barrier"),
        )),
    ), folds=True),
    Section("links", "Links and places", (
        Field("links.kind", "Links", options={"real": "Real: nothing is slowed", "modelled": "Modelled: by class of link"}),
        _choice("links.in_server", "In a server", _LINKS),
        _choice("links.in_rack", "Between servers", _LINKS, "Of one rack."),
        _choice("links.between_racks", "Between racks", _LINKS),
        Field("links.ports_per_server", "Network ports", "That a server's ranks share."),
        Field("links.slow_down", "Slower", "So that one can watch: every message takes so many times as long.", "times"),
        Field("links.size_factor", "Larger", "Every message counts as so many times as long as it is.", "times"),
        Field("placement.gpus_per_server", "GPUs a server", "Tensor slices share one if they fit."),
        Field("placement.servers_per_rack", "Servers a rack", "A pipeline shares one if it fits."),
        Field("placement.servers", "Each rank's server", "Left empty, the rule places the ranks; or as 0, 0, 1, 1."),
    ), folds=True),
    Section("faults", "Faults and restarts", (
        Field("faults", "Faults", 'A list, such as [{"kind": "slow-rank", "rank": 1, "step": 5, "factor": 2}]. Kinds: slow-rank, '
              "slow-link, lost-message, kill, hang. Rank and step, left out, are drawn from the seed.", lines=4),
        Field("checkpoint_every", "Checkpoint every", "0 keeps none.", "steps"),
        Field("restarts", "Restarts", "So often a job that lost a rank begins again from its last checkpoint."),
    ), folds=True),
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
    ), folds=True),
    Section("run", "Run", (
        Field("name", "Name", "Left empty, the job's shape is its name."),
        Field("device", "Device", options={"cpu": "CPU", "cuda": "GPU (CUDA)"}),
        Field("timeout_seconds", "Time-out", "How long a rank waits for another before it gives up.", "s"),
    )),
)
FIELDS = {one.name: one for section in SECTIONS for one in section.fields}
