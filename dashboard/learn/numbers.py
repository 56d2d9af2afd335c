"""The formulas of each idea with numbers in them, all worked out by the code that the product itself runs on."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dashboard.runs.words import percent
from trainer.collectives.cost import ALL_REDUCE_SECONDS, busbw
from trainer.collectives.plans import ALGORITHMS
from trainer.emulate.link_classes import CLASSES
from trainer.grid import AXES, Grid
from trainer.memory.sizes import (
    GPT_3,
    bytes_per_parameter,
    kv_cache_bytes,
    perceptron_parameters,
    score_grid_bytes,
)
from trainer.presets import preset
from trainer.schedules.theory import bubble_share
from trainer.spec import GridSpec, JobSpec, Moe, parse

CARD_BYTES = 80e9
SEVENTY_BILLION = 70e9
HALF = 2  # bytes of a number in fp16 or bf16


@dataclass(frozen=True)
class Number:
    """A formula in words or signs, and what it comes to."""

    formula: str
    value: str


def size(count: float) -> str:
    """"140 GB": decimal units, three figures that count."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{float(f'{count / unit:.3g}'):,g} {name}"
    return f"{count:g} B"


def time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} µs"


def ring_bytes(size_bytes: float, ranks: int) -> float:
    """What all ranks together send in one AllReduce around a ring: 2·M·(N−1)."""
    return 2 * size_bytes * (ranks - 1)


def everyone_bytes(size_bytes: float, ranks: int) -> float:
    """The same where everyone sends everything to everyone: M·N·(N−1)."""
    return size_bytes * ranks * (ranks - 1)


def pipeline(micro_batches: int, stages: int = 4) -> JobSpec:
    return parse({"grid": {"pp": stages}, "schedule": {"name": "gpipe", "micro_batches": micro_batches},
                  "batch": 32, "model": {"name": "gpt", "layers": stages}})


def _one_device() -> list[Number]:
    billions = round(GPT_3.parameters / 1e9)
    gpt_3 = billions * 1e9 * HALF
    return [
        Number("70 billion parameters × 2 bytes", size(SEVENTY_BILLION * HALF)),
        Number("GPT-3: 96 blocks, 12,288 wide", f"{GPT_3.parameters:,} parameters"),
        Number(f"{billions} billion × 2 bytes", size(gpt_3)),
        Number("cards of 80 GB that just hold GPT-3's parameters", f"{math.ceil(gpt_3 / CARD_BYTES)}"),
    ]


def _two_walls() -> list[Number]:
    a_parameter = float(bytes_per_parameter("ddp", 1))
    grids = [score_grid_bytes(1, GPT_3.heads, tokens, HALF) for tokens in (2048, 4096)]
    return [
        Number("weights + gradients + two moments, in one precision", "4 × the parameters"),
        Number("mixed precision with Adam: 2 + 2 + 4 + 4 + 4", f"{a_parameter:g} bytes a parameter"),
        Number(f"70 billion parameters × {a_parameter:g} bytes", size(SEVENTY_BILLION * a_parameter)),
        Number("attention's scores, one layer of GPT-3, 2,048 → 4,096 tokens", f"{size(grids[0])} → {size(grids[1])}"),
    ]


def _data() -> list[Number]:
    weights, biases = perceptron_parameters(784, 16, 16, 10)
    return [
        Number("averaged gradient of N copies", "g = (g₁ + … + g_N) / N"),
        Number("the digit reader: weights + biases", f"{weights:,} + {biases} = {weights + biases:,} parameters"),
        Number("its gradients, averaged once a step", size(4 * (weights + biases))),
    ]


def _cloning() -> list[Number]:
    model = 350e9
    found = [
        Number("around a ring, each of N ranks sends", "2·M·(N−1)/N"),
        Number("350 GB over 64 ranks, around a ring, all together", f"{ring_bytes(model, 64) / 1e9:,.0f} GB"),
        Number("the same, everyone to everyone: M·N·(N−1)", f"{everyone_bytes(model, 64) / 1e9:,.0f} GB"),
    ]
    for mode, formula in (("ddp", "16"), ("zero-1", "4 + 12/N"), ("zero-2", "2 + 14/N"), ("zero-3", "16/N")):
        name = "DDP" if mode == "ddp" else mode.replace("zero", "ZeRO")
        found.append(Number(f"{name}, bytes a parameter on 64 copies: {formula}", f"{float(bytes_per_parameter(mode, 64)):.4g}"))
    return found


def _tensor() -> list[Number]:
    matrices = HALF * (GPT_3.attention + GPT_3.feed_forward)
    return [
        Number("columns of a rank, of a matrix with n", "n / t"),
        Number("AllReduces in a layer, forward + backward", "2 + 2"),
        Number("a GPT-3 block's matrices, on one rank → on each of 8", f"{size(matrices)} → {size(matrices / 8)}"),
    ]


def _heads() -> list[Number]:
    return [
        Number("score of a query and a key", "q·k = q₁k₁ + … + q_d·k_d: complete only on one rank"),
        Number("GPT-3: 96 heads on 8 ranks", f"{GPT_3.heads // 8} heads a rank, each {GPT_3.width // GPT_3.heads} numbers wide"),
        Number("messages between a rank's heads before their outputs join", "0"),
    ]


def _pipeline() -> list[Number]:
    boundary = HALF * GPT_3.context * GPT_3.width
    block = HALF * GPT_3.block
    return [
        Number("what crosses a cut of GPT-3: 2,048 tokens × 12,288 × 2 bytes", size(boundary)),
        Number("what one block of it holds and never sends", size(block)),
        Number("blocks of each of 8 stages: 96 / 8", f"{GPT_3.layers // 8}"),
    ]


def _bubble() -> list[Number]:
    return [
        Number("idle share of the whole, p stages and m micro-batches", "(p−1)/(m+p−1)"),
        Number("one batch through 4 stages: 3/4", percent(bubble_share(pipeline(1)))),
        Number("one batch through 8 stages: 7/8", percent(bubble_share(pipeline(1, 8)))),
    ]


def _micro_batches() -> list[Number]:
    counts = {1: "one micro-batch", 4: "4 micro-batches", 8: "8", 16: "16", 32: "32"}
    return [Number(f"4 stages, {words}: 3/{m + 3}", percent(bubble_share(pipeline(m)))) for m, words in counts.items()]


def _long_context() -> list[Number]:
    grids = [score_grid_bytes(1, GPT_3.heads, tokens, HALF) for tokens in (2048, 8192, 131_072)]
    return [
        Number("pairs that attention compares among n tokens", "n²"),
        Number("GPT-3's keys and values of 2,048 tokens", f"{kv_cache_bytes(GPT_3, 2048):,} B"),
        *(Number(f"scores of one layer, {tokens:,} tokens, if they are written out", size(grid))
          for tokens, grid in zip((2048, 8192, 131_072), grids, strict=True)),
    ]


def _ring_attention() -> list[Number]:
    return [
        Number("hops of keys and values in a layer's forward, c ranks", "c − 1"),
        Number("new maximum", "m′ = max(m, max s)"),
        Number("new sum and output, so that order does not matter", "l′ = l·e^(m−m′) + Σ e^(s−m′), and o likewise"),
        Number("GPT-3: keys and values of a layer, on each of 8 ranks", size(kv_cache_bytes(GPT_3, 2048) / GPT_3.layers / 8)),
    ]


def _experts() -> list[Number]:
    model = Moe()
    return [
        Number("share of the experts that one token wakes", "k / E"),
        Number(f"the preset's: {model.top_k} of {model.experts}", percent(model.top_k / model.experts)),
        Number("2 of 32", percent(2 / 32)),
    ]


def _routing() -> list[Number]:
    given = preset("experts-favourites").spec.model
    assert isinstance(given, Moe)
    return [
        Number("weight of expert e, of scores z", "softmax(z)ₑ = e^(zₑ) / Σ e^z"),
        Number("room of an expert", "⌈factor · k · tokens / E⌉"),
        Number(f"the preset's: ⌈{given.capacity_factor:g} · {given.top_k} · {given.context} / {given.experts}⌉",
               f"{given.capacity} tokens"),
        Number("balancing penalty of a layer", "E · Σ (share of choices × mean weight), 1 if all experts get the same"),
    ]


def _five_axes() -> list[Number]:
    grid = Grid.of(GridSpec(dp=64, pp=4, tp=8))
    address = grid.address(1000)
    return [
        Number("8 tensor × 4 pipeline × 64 data", f"{grid.ranks:,} ranks"),
        Number("8 tensor × 16 pipeline × 64 data", f"{GridSpec(dp=64, pp=16, tp=8).ranks:,} ranks"),
        Number("address of rank 1,000 of the first", ", ".join(f"{axis} {getattr(address, axis)}" for axis in AXES
                                                                if grid.size(axis) > 1)),
    ]


def _placement() -> list[Number]:
    near, far = CLASSES["nvlink-4"], CLASSES["infiniband-ndr"]
    gradients = 50e6
    ring = ALL_REDUCE_SECONDS["ring"]
    return [
        *(Number(link.word, f"{link.bytes_per_second / 1e9:g} GB/s, {time(link.latency_seconds)}") for link in CLASSES.values()),
        Number(f"AllReduce of 50 MB among 8, {near.word} → {far.word}",
               f"{time(ring(8, gradients, near))} → {time(ring(8, gradients, far))}"),
    ]


def _collectives() -> list[Number]:
    link = CLASSES["infiniband-ndr"]
    formulas = {
        "ring": "2(N−1)α + 2(N−1)/N · M/β", "tree": "2⌈log₂N⌉(α + M/β)",
        "recursive-doubling": "⌈log₂N⌉(α + M/β)", "halving-doubling": "2·log₂N·α + 2(N−1)/N · M/β",
    }
    found = [
        Number(f"{name}: {formula}",
               f"{time(ALL_REDUCE_SECONDS[name](16, 1e3, link))} and {time(ALL_REDUCE_SECONDS[name](16, 1e9, link))}")
        for name, formula in formulas.items()
    ]
    steps = len(ALGORITHMS["all_reduce"]["ring"](4))
    return [
        Number("steps of a ring of 4, each of a quarter: 2(N−1)", f"{steps}"),
        Number(f"16 ranks over {link.word}", "1 kB and 1 GB"), *found,
        Number("busbw of 8 GiB among 16 ranks in 47,535 µs", f"{busbw('all_reduce', 16, 2**33, 47_535e-6) / 1e9:.1f} GB/s"),
    ]


NUMBERS: dict[str, Callable[[], list[Number]]] = {
    "one-device": _one_device, "two-walls": _two_walls, "data": _data, "cloning": _cloning, "tensor": _tensor, "heads": _heads,
    "pipeline": _pipeline, "bubble": _bubble, "micro-batches": _micro_batches, "long-context": _long_context,
    "ring-attention": _ring_attention, "experts": _experts, "routing": _routing, "five-axes": _five_axes,
    "placement": _placement, "collectives": _collectives,
}
