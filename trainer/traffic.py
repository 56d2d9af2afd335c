"""What ranks hand to each other in one step of a job, by formulas: sizes in bytes, and how often. Nothing here loads torch.

A test holds it to the spans of real ranks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from trainer.grid import averaging_axes, expert_axes
from trainer.memory.stages import Shape, stage_parameters
from trainer.schedules import stages_of
from trainer.schedules.cuts import layers_of
from trainer.spec import JobSpec, Moe

LOSS_BYTES = 8  # a float64, averaged over the copies
FORWARD, BACKWARD, LAST_BACKWARD, END = "forward", "backward", "last backward", "end"


@dataclass(frozen=True)
class Talk:
    """What the ranks of one place in the pipeline take part in along `axis`, `count` times in a row.

    `size_bytes` is the whole array's, as its span says it; of an all-to-all what one rank hands in, of a "send" its message.
    `during` each "forward" or "backward" of a micro-batch of `stage`, its "last backward" of a step, or the step's "end".
    """

    axis: str
    collective: str
    size_bytes: int
    count: int
    during: str
    stage: int = 0

    @property
    def is_loss(self) -> bool:
        return (self.collective, self.size_bytes, self.during) == ("all_reduce", LOSS_BYTES, END)


def talks(spec: JobSpec, place: int) -> list[Talk]:
    """Of the ranks at `place` in the pipeline, in one step; what lies between stages is in `letters`."""
    found: list[Talk] = []
    for stage in stages_of(spec)[place]:
        found += [*_of_slices(spec, stage), *_of_parts(spec, stage), *_of_experts(spec, stage)]
    return [one for one in [*found, *_of_copies(spec, place)] if one.count and one.size_bytes]


def letters(spec: JobSpec, place: int) -> int:
    """How many messages a rank at `place` sends to other ranks of its pipeline in a step."""
    own, count = stages_of(spec)[place], len(layers_of(spec))
    here = own if spec.ways == 1 else []  # both stages of a rank have micro-batches of their own where these go both ways
    return spec.schedule.micro_batches // spec.ways * sum(
        0 <= other < count and other not in here for stage in own for other in (stage - 1, stage + 1))


def calls(spec: JobSpec, talk: Talk) -> int:
    """How often in a step."""
    return talk.count * (spec.schedule.micro_batches // spec.ways if talk.during in (FORWARD, BACKWARD) else 1)


def of_copies(spec: JobSpec) -> Counter[int]:
    """Sizes of AllReduces of copies that average by DDP, in a step of the busiest place."""
    return max((_sizes(spec, _of_copies(spec, place), "all_reduce") for place in range(spec.grid.pp)),
               key=lambda sizes: sum(size * count for size, count in sizes.items()))


def of_slices(spec: JobSpec) -> Counter[int]:
    """Sizes of AllReduces of tensor slices, in a step, where one rank has all stages of a slice."""
    if spec.grid.pp > 1:
        return Counter()
    return _sizes(spec, [one for stage in stages_of(spec)[0] for one in _of_slices(spec, stage)], "all_reduce")


def _sizes(spec: JobSpec, found: Iterable[Talk], collective: str) -> Counter[int]:
    sizes: Counter[int] = Counter()
    for talk in found:
        if talk.collective == collective:
            sizes[talk.size_bytes] += calls(spec, talk)
    return sizes


def _element(spec: JobSpec) -> int:
    return 8 if spec.precision == "float64" else 4


def _product(spec: JobSpec) -> int:
    """Bytes of a number that a matrix made: autocast's products are bf16, norms and sums behind them float32."""
    return 2 if spec.precision == "bf16" else _element(spec)


def _tokens(spec: JobSpec) -> int:
    """Of a micro-batch on one part of the context."""
    assert spec.model.name != "perceptron"
    return spec.micro_batch_samples * spec.model.context // spec.grid.cp


def _of_slices(spec: JobSpec, stage: int) -> Iterator[Talk]:
    """Megatron's exchanges (Shoeybi et al., 2019): two of activations in a layer's forward and two in its backward, one of
    the embedding, one behind the scores; of the scores a token's maximum, then its sum and its target's. Sequence parallel
    (Korthikanti et al., 2022) each of those of activations is an AllGather or a ReduceScatter, and gradients of what all hold
    are summed at the end. A layer that runs its forward again needs all of it but its last sum."""
    if spec.grid.tp == 1 or spec.model.name == "perceptron":
        return
    layers, is_first, is_last = layers_of(spec)[stage], stage == 0, stage == len(layers_of(spec)) - 1
    again = spec.checkpointing == "layer"
    whole, made = (_tokens(spec) * spec.model.width * size for size in (_element(spec), _product(spec)))
    numbers = _tokens(spec) * _element(spec)

    def of(collective: str, size_bytes: int, count: int, during: str) -> Talk:
        return Talk("tp", collective, size_bytes, count, during, stage)

    if spec.splits.tensor.sequence_parallel:
        yield of("all_gather", whole, 2 * layers + is_last, FORWARD)
        yield of("reduce_scatter", made, 2 * layers, FORWARD)
        yield of("reduce_scatter", whole, is_first, FORWARD)
        yield of("all_gather", made, 2 * layers, BACKWARD)
        yield of("all_gather", whole, 2 * again * layers + is_first, BACKWARD)
        yield of("reduce_scatter", whole, 2 * layers + is_last, BACKWARD)
        yield of("reduce_scatter", made, again * layers, BACKWARD)
        held = 6 * layers + is_first * spec.model.context + 2 * is_last
        yield of("all_reduce", held * spec.model.width * _element(spec), 1, END)
    elif isinstance(spec.model, Moe):  # what slices of experts make is weighted behind its sum
        slots = _slots(spec)
        for size in (slots * _product(spec), made):
            yield of("all_reduce", size, layers, FORWARD)
            yield of("all_reduce", size, again * layers, BACKWARD)
        yield of("all_reduce", whole, is_first, FORWARD)
        yield of("all_reduce", whole, layers + is_last, BACKWARD)
        yield of("all_reduce", slots * _element(spec), layers, BACKWARD)
    else:
        yield of("all_reduce", made, 2 * layers, FORWARD)
        yield of("all_reduce", whole, is_first, FORWARD)
        yield of("all_reduce", whole, 2 * layers + is_last, BACKWARD)
        yield of("all_reduce", made, again * layers, BACKWARD)
    yield of("all_reduce", numbers, is_last, FORWARD)
    yield of("all_reduce", 2 * numbers, is_last, FORWARD)


def _of_parts(spec: JobSpec, stage: int) -> Iterator[Talk]:
    """Parts of the context: keys and values around a ring, and their gradients with them on the way back (Liu et al., 2023);
    or queries, keys and values to whole heads, and those back (Jacobs et al., 2023)."""
    if spec.grid.cp == 1 or spec.model.name == "perceptron":
        return
    layers, cp, again = layers_of(spec)[stage], spec.grid.cp, spec.checkpointing == "layer"
    numbers = _tokens(spec) * spec.model.width // spec.grid.tp
    if spec.splits.context.attention == "ring":  # whose running sums are never in bf16
        one = numbers * _element(spec)
        yield Talk("cp", "send", 2 * one, layers * (cp - 1), FORWARD, stage)
        yield Talk("cp", "send", 2 * one, layers * ((1 + again) * (cp - 1) + cp), BACKWARD, stage)
    else:
        one = numbers * _product(spec)
        for size_bytes in (3 * one, one):
            yield Talk("cp", "all_to_all", size_bytes, layers, FORWARD, stage)
            yield Talk("cp", "all_to_all", size_bytes, (1 + again) * layers, BACKWARD, stage)
    if isinstance(spec.model, Moe):  # a byte for each token and expert: who chose an expert earlier in the sequence
        chosen = spec.micro_batch_samples * spec.model.context * spec.model.experts
        yield Talk("cp", "all_gather", chosen, layers, FORWARD, stage)
        yield Talk("cp", "all_gather", chosen, again * layers, BACKWARD, stage)


def _of_experts(spec: JobSpec, stage: int) -> Iterator[Talk]:
    """Slots of all experts to where these are, and back (Lepikhin et al., 2020); backward the same of their gradients."""
    if spec.grid.ep == 1 or not isinstance(spec.model, Moe):
        return
    layers, again = layers_of(spec)[stage], spec.checkpointing == "layer"
    slots = _slots(spec) * _element(spec)
    yield Talk("ep", "all_to_all", slots, 2 * layers, FORWARD, stage)
    yield Talk("ep", "all_to_all", slots, (2 + 2 * again) * layers, BACKWARD, stage)


def _slots(spec: JobSpec) -> int:
    """Numbers in all experts' slots for the tokens of a micro-batch on one part of the context."""
    assert isinstance(spec.model, Moe)
    room = min(spec.model.capacity, spec.model.context // spec.grid.cp)
    return spec.model.experts * spec.micro_batch_samples * room * spec.model.width


def _of_copies(spec: JobSpec, place: int) -> Iterator[Talk]:
    """Gradients, and what ZeRO gathers (Rajbhandari et al., 2020): N pieces of a parameter are as long as the longest."""
    axis = averaging_axes(spec)
    if not axis:
        return
    copies, mode, held = spec.averaging_ranks, spec.splits.data.mode, stages_of(spec)[place]
    for stage in held:
        layers = _layers(spec, stage)
        whole = _element(spec) * sum(math.prod(shape) for layer in layers for shape in layer)
        if mode == "ddp":
            buckets = math.ceil(whole / (spec.splits.data.bucket_mb * 2**20))
            yield Talk(axis, "all_reduce", whole // buckets, buckets, LAST_BACKWARD, stage)
        for layer in layers if mode.startswith("zero") else ():
            size_bytes = _element(spec) * sum(-(-rows // copies) * copies * math.prod(rest) for rows, *rest in layer)
            yield Talk(axis, "reduce_scatter", size_bytes, 1, LAST_BACKWARD if mode == "zero-1" else BACKWARD, stage)
            gathered = (FORWARD, BACKWARD) if mode == "zero-3" else (END,)
            yield from (Talk(axis, "all_gather", size_bytes, 1, during, stage) for during in gathered)
    if mode in ("parameter-server", "everyone"):
        whole = _element(spec) * sum(math.prod(shape) for stage in held for layer in _layers(spec, stage) for shape in layer)
        yield Talk(axis, "send", whole, copies - 1, END)
    if isinstance(spec.model, Moe):
        blocks = sum(layers_of(spec)[stage] for stage in held)
        yield Talk(axis, "all_reduce", blocks * 8 * (2 * spec.model.experts + 1), 1, END)
        if spec.grid.ep > 1 and expert_axes(spec):
            width, tp = spec.model.width, spec.grid.tp
            own = blocks * spec.model.experts // spec.grid.ep * ((8 * width**2 + 4 * width) // tp + width)
            yield Talk(expert_axes(spec), "all_reduce", own * _element(spec), 1, END)
    if len(layers_of(spec)) - 1 in held:
        yield Talk(axis, "all_reduce", LOSS_BYTES, 1, END)


def _layers(spec: JobSpec, stage: int) -> list[list[Shape]]:
    """Shapes of the parameters of each layer of a stage that copies average; of a mixture without the experts they share."""
    shapes, count = stage_parameters(spec, stage), layers_of(spec)[stage]
    if spec.model.name == "perceptron":
        return [shapes[2 * layer:2 * layer + 2] for layer in range(count)]
    before = 2 * (stage == 0)
    after = len(shapes) - 4 * (stage == len(layers_of(spec)) - 1)
    a_block = (after - before) // count
    blocks = [shapes[at:at + a_block] for at in range(before, after, a_block)]
    if isinstance(spec.model, Moe):
        blocks = [_mixture(spec.model, block, spec.grid.ep) for block in blocks]
    return [one for one in (shapes[:before], *blocks, shapes[after:]) if one]


def _mixture(model: Moe, block: list[Shape], ep: int) -> list[Shape]:
    """A block with a router and experts in the feed-forward's place, its last four."""
    router = [(model.experts, model.width), (model.experts,)]
    if ep > 1:
        return block[:-4] + router
    own: list[Shape] = [(model.experts, *shape) for shape in block[-4:]]
    return block[:-4] + router + own
