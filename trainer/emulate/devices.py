"""How long a named card would take for the actions of a stage, from FLOPs and bytes. Nothing here loads torch.

By the roofline (Williams, Waterman and Patterson, 2009) an action lasts as long as its arithmetic or its memory traffic,
whichever is longer. A layer's matrix products cost 2 FLOPs a weight and token forward, as many for the gradient of what
went in, and as many for the weights'; attention's two products of every token with every other cost as much again for
each of their two gradients. Embeddings and the head are not counted, nor are launches of kernels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING

from trainer.complaints import FieldError

if TYPE_CHECKING:
    from trainer.spec import JobSpec, Perceptron

# The part of its peak that a card reaches: large training jobs report 38 to 43 % (Llama 3, 2024), copies in memory 80 to 90 %.
COMPUTE_EFFICIENCY = 0.4
MEMORY_EFFICIENCY = 0.8

MOST_SECONDS = 60.0  # of one action, slowed down

_PIXELS, _DIGITS = 784, 10


@dataclass(frozen=True)
class Device:
    """Peak rates as the maker states them, without sparsity: FLOP/s by precision, and of its memory; and its memory's size.

    `source` is the data sheet that says so.
    """

    word: str
    flops_per_second: Mapping[str, float]
    bytes_per_second: float
    memory_bytes: float
    source: str

    def seconds(self, work: Work, precision: str) -> float:
        return max(work.flops / (self.flops_per_second[precision] * COMPUTE_EFFICIENCY),
                   work.bytes / (self.bytes_per_second * MEMORY_EFFICIENCY))


@dataclass(frozen=True)
class Work:
    flops: float
    bytes: float


# bf16 by tensor cores, at half of what data sheets state with sparsity. float32 and float64 without them: torch multiplies
# float32 matrices as TF32 only where it is told to (then 494.7, 156 and 1,125 TFLOP/s), which no job here does.
DEVICES: Mapping[str, Device] = MappingProxyType({
    "h100": Device("H100 SXM", {"bf16": 989e12, "float32": 67e12, "float64": 34e12}, 3.35e12, 80e9,
                   "NVIDIA H100 Tensor Core GPU Datasheet: H100 SXM, 1,979 TFLOP/s BF16 with sparsity"),
    "a100": Device("A100 SXM 80 GB", {"bf16": 312e12, "float32": 19.5e12, "float64": 9.7e12}, 2.039e12, 80e9,
                   "NVIDIA A100 Tensor Core GPU Datasheet: A100 80GB SXM"),
    # Of the eight GPUs of an HGX B200 an eighth: 36 PFLOP/s BF16 with sparsity, 600 TFLOP/s FP32, 296 TFLOP/s FP64.
    "b200": Device("B200", {"bf16": 2250e12, "float32": 75e12, "float64": 37e12}, 8e12, 180e9,
                   "NVIDIA Blackwell Datasheet: HGX B200, 1.44 TB of memory for eight GPUs"),
})
_ITEM_BYTES = {"bf16": 2, "float32": 4, "float64": 8}


def card_bytes(spec: JobSpec) -> float | None:
    """Memory of the card that a rank stands for; None where the job names neither a card nor a size."""
    if spec.pace.memory_mb:
        return spec.pace.memory_mb * 1e6
    return DEVICES[spec.pace.device].memory_bytes if spec.pace.kind == "device" else None


def device_seconds(spec: JobSpec) -> tuple[float, float, float]:
    """(forward, gradient of inputs, gradient of weights) of one micro-batch in a rank's even share of the layers, s.

    Without the job's slow-down.
    """
    device, share = DEVICES[spec.pace.device], spec.model.layers / spec.grid.pp
    forward, inputs, weights = (device.seconds(work, spec.precision) * share for work in layer_work(spec))
    return forward, inputs, weights


def layer_work(spec: JobSpec) -> tuple[Work, Work, Work]:
    """Of one layer and micro-batch on one rank, the average one if layers differ: forward, inputs' and weights' gradients."""
    model, item = spec.model, _ITEM_BYTES[spec.precision]
    samples = spec.micro_batch_samples
    if model.name == "perceptron":
        weights, ends = _perceptron(model)
        return (_products(samples, weights, ends, item),) * 3
    tokens, width = samples * model.context / spec.grid.cp, model.width
    per_token, stored, ends = 12 * width**2, 12 * width**2, 16 * width  # weights a token meets; all; features in and out
    if model.name == "moe":
        per_token = 4 * width**2 + model.top_k * 8 * width**2 + width * model.experts
        stored = 4 * width**2 + model.experts // spec.grid.ep * 8 * width**2 + width * model.experts
        ends = 6 * width + model.top_k * 10 * width + width + model.experts
    tp = spec.grid.tp
    products = Work(2 * tokens * per_token / tp, item * (stored + tokens * ends) / tp)
    attention = Work(4 * tokens * model.context * width / tp, item * 4 * tokens * width / tp)
    return (
        Work(products.flops + attention.flops, products.bytes + attention.bytes),
        Work(products.flops + 2 * attention.flops, products.bytes + 2 * attention.bytes),
        products,
    )


def device_misfits(spec: JobSpec) -> list[FieldError]:
    """An action that nobody would wait for."""
    if spec.pace.kind != "device":
        return []
    longest = max(device_seconds(spec))
    if longest * spec.pace.slow_down <= MOST_SECONDS:
        return []
    return [FieldError("pace.slow_down", spec.pace.slow_down,
                       f"an action would last {longest * spec.pace.slow_down:.3g} s; at most {MOST_SECONDS:g} s would do, "
                       f"which is a slow-down of {_rounded_down(MOST_SECONDS / longest):.3g}")]


def _rounded_down(number: float) -> float:
    """To three digits, so that what is said would do."""
    unit = 10.0 ** (math.floor(math.log10(number)) - 2)
    return math.floor(number / unit) * unit


def _perceptron(model: Perceptron) -> tuple[float, float]:
    """(weights, features in and out) of the average layer."""
    widths = [_PIXELS, *[model.width] * model.hidden_layers, _DIGITS]
    pairs = list(pairwise(widths))
    return (sum(one * other for one, other in pairs) / len(pairs), sum(one + other for one, other in pairs) / len(pairs))


def _products(rows: float, weights: float, ends: float, item_bytes: int) -> Work:
    return Work(2 * rows * weights, item_bytes * (weights + rows * ends))
