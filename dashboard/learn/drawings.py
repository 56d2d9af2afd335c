"""A small drawing for each idea, made from what the trainer itself goes by: schedules, plans of collectives, grids, sizes."""

from __future__ import annotations

import math
from collections.abc import Callable

from dashboard.learn.drawing import WIDTH, Drawing, bars
from dashboard.learn.ideas import IDEAS
from dashboard.learn.numbers import CARD_BYTES, HALF, SEVENTY_BILLION, pipeline, size
from dashboard.runs.sketch import Sketch, sketch
from trainer.collectives.plans import ALGORITHMS
from trainer.collectives.plans.plan import Plan
from trainer.grid import Grid
from trainer.memory import predicted
from trainer.memory.sizes import GPT_3, bytes_per_parameter
from trainer.placement import Placement
from trainer.spec import Moe, parse

RANK_KINDS = ("forward", "backward", "backward-weight", "send")  # a colour for each of four ranks, which are also named


def _one_device() -> Drawing:
    rows = [("a card's memory", CARD_BYTES), ("70 billion, in fp16", SEVENTY_BILLION * HALF),
            ("GPT-3, in fp16", GPT_3.parameters * HALF),
            ("70 billion, training", SEVENTY_BILLION * float(bytes_per_parameter("ddp", 1)))]
    return bars("What a card holds beside what models need", [
        (name, [("forward" if at == 0 else "backward", count)], size(count)) for at, (name, count) in enumerate(rows)])


def _two_walls() -> Drawing:
    kinds = {"weights": "backward-weight", "optimizer": "optimizer", "gradients": "backward", "activations": "forward"}
    rows = []
    for context in (32, 64, 128, 256):
        held = predicted(parse({"model": {"name": "gpt", "context": context}, "schedule": {"micro_batches": 1}, "batch": 8}))[0]
        parts = [(kind, float(getattr(held, name))) for name, kind in kinds.items()]
        rows.append((f"{context} tokens", parts, size(sum(count for _, count in parts))))
    return bars("A small GPT: weights, optimizer and gradients stay as they are while activations grow with the tokens", rows)


def _data() -> Drawing:
    made = Drawing("Four copies of one model, each with a quarter of the batch; their gradients are averaged", 128)
    for rank, kind in enumerate(RANK_KINDS):
        x = rank * 162
        made.box(x, 0, 154, 26, kind, f"slice {rank} of the batch")
        made.box(x, 38, 154, 40, "plain", f"whole model, rank {rank}")
    made.box(0, 98, WIDTH, 28, "all-reduce", "AllReduce: one averaged gradient for all")
    return made


def _cloning() -> Drawing:
    names = {"ddp": "DDP", "zero-1": "ZeRO-1", "zero-2": "ZeRO-2", "zero-3": "ZeRO-3"}
    return bars("Bytes a parameter that each of 8 copies holds, by how they share", [
        (name, [("backward-weight", float(bytes_per_parameter(mode, 8)))], f"{float(bytes_per_parameter(mode, 8)):g} B")
        for mode, name in names.items()])


def _tensor() -> Drawing:
    made = Drawing("One matrix of sixteen columns, four to each of four ranks; every rank gets the whole input", 132)
    for column in range(16):
        rank = column // 4
        for row in range(4):
            made.box(120 + column * 32.5, row * 26, 30, 24, RANK_KINDS[rank], "" if row != 1 else f"{rank}")
    made.box(0, 0, 84, 102, "plain", "input")
    made.label(120, 124, "each rank's columns give its own numbers of the output")
    return made


def _heads() -> Drawing:
    made = Drawing("Eight heads on four ranks: a head stays on its rank from queries to outputs, which an AllReduce joins", 150)
    for head in range(8):
        rank, x = head // 2, head * 80
        for row, word in enumerate(("q·k", "softmax", f"head {head}")):
            made.box(x, row * 34, 74, 28, RANK_KINDS[rank], word)
    for rank in range(4):
        made.label(rank * 160 + 77, 111, f"rank {rank}", "middle")
    made.box(0, 120, 634, 28, "all-reduce", "AllReduce: outputs of all heads")
    return made


def _long_context() -> Drawing:
    made = Drawing("Pairs of tokens: twice the tokens, four times the grid", 150)
    x = 0.0
    for tokens in (4, 8, 16):
        for row in range(tokens):
            for column in range(tokens):
                made.box(x + column * 8, row * 8, 7, 7, "forward" if column <= row else "empty")
        made.label(x, tokens * 8 + 16, f"{tokens} × {tokens} = {tokens**2}")
        x += tokens * 8 + 90
    return made


def _ring_attention() -> Drawing:
    """From each rank to the next: after k hops rank r has what came from rank r − k."""
    ranks = 4
    made = Drawing("Four ranks and three hops: whose keys and values each rank compares its queries with", 170)
    for hop in range(ranks):
        made.label(148 + hop * 124, 12, "its own" if hop == 0 else f"after hop {hop}")
    for rank in range(ranks):
        made.label(0, 44 + rank * 36, f"queries of rank {rank}")
        for hop in range(ranks):
            origin = (rank - hop) % ranks
            made.box(148 + hop * 124, 24 + rank * 36, 116, 30, RANK_KINDS[origin], f"keys of {origin}")
    return made


def _experts() -> Drawing:
    model = IDEAS["experts"].spec.model
    assert isinstance(model, Moe)
    chosen = {0: (1, 6), 1: (3, 4), 2: (0, 6)}
    made = Drawing("Three tokens, each with its own two of eight experts awake", 118)
    for token, awake in chosen.items():
        made.label(0, 20 + token * 40, f"token {token}")
        for expert in range(model.experts):
            made.box(80 + expert * 69, token * 40, 64, 30, "forward" if expert in awake else "empty", f"expert {expert}")
    return made


SCORES = (0.4, 2.1, -0.6, 1.4, 0.1, -1.2, 0.9, -0.3)  # of one token, for eight experts: an example


def _routing() -> Drawing:
    whole = sum(math.exp(score) for score in SCORES)
    weights = [math.exp(score) / whole for score in SCORES]
    kept = sorted(range(len(weights)), key=lambda expert: -weights[expert])[:2]
    made = Drawing("A router's scores for one token, softened to weights: the two largest are kept", 156)
    for expert, weight in enumerate(weights):
        height = weight / max(weights) * 110
        made.box(expert * 80, 120 - height, 72, height, "forward" if expert in kept else "empty")
        made.label(expert * 80 + 36, 138, f"{weight:.0%}", "middle")
        made.label(expert * 80 + 36, 154, f"expert {expert}", "middle")
    return made


def _five_axes() -> Drawing:
    spec = IDEAS["five-axes"].spec
    grid = Grid.of(spec.grid)
    made = Drawing("Eight ranks and their addresses: data copy, pipeline stage, tensor slice", 132)
    for rank in range(grid.ranks):
        at = grid.address(rank)
        x, y = (at.dp * 2 + at.pp) * 160, 20 + at.tp * 56
        made.box(x, y, 152, 48, RANK_KINDS[at.dp * 2 + at.pp], f"rank {rank}: {at.dp}, {at.pp}, {at.tp}")
    for place in range(4):
        made.label(place * 160, 12, f"copy {place // 2}, stage {place % 2}")
    return made


def _placement() -> Drawing:
    spec = IDEAS["placement"].spec
    places = Placement.of(spec.grid, spec.placement)
    servers = sorted(set(places.servers))
    made = Drawing("Four tensor slices on two servers: their AllReduces have to leave the server", 110)
    for number, server in enumerate(servers):
        x = number * 330
        made.box(x, 0, 310, 104, "empty")
        made.label(x + 12, 20, f"server {server}")
        own = [rank for rank, at in enumerate(places.servers) if at == server]
        for place, rank in enumerate(own):
            made.box(x + 12 + place * 145, 34, 138, 56, RANK_KINDS[rank], f"slice {rank}")
    return made


def _collectives() -> Drawing:
    """How many ranks' numbers each chunk of each rank has in it, after every step."""
    plan = Plan("all_reduce", "ring", 4, 4, tuple(map(tuple, ALGORITHMS["all_reduce"]["ring"](4))))
    start = [{chunk: frozenset({rank}) for chunk in range(4)} for rank in range(4)]
    states = [start, *plan.states(start)]
    made = Drawing("A ring of four adds up: of how many ranks each rank's four chunks hold the sum, after each step", 152)
    for step, state in enumerate(states):
        x = 56 + step * 84
        made.label(x, 12, "at first" if step == 0 else f"step {step}")
        for rank, chunks in enumerate(state):
            for chunk in range(4):
                count = len(chunks[chunk])
                made.box(x + chunk * 19, 22 + rank * 33, 17, 26, "all-reduce" if count == 4 else "plain", f"{count}")
    for rank in range(4):
        made.label(0, 39 + rank * 33, f"rank {rank}")
    return made


def _sketch(micro_batches: int, name: str) -> Sketch:
    spec = pipeline(micro_batches)
    found = sketch(spec.model_copy(update={"schedule": spec.schedule.model_copy(update={"name": name})}))
    assert found is not None
    return found


DRAWINGS: dict[str, Callable[[], Drawing]] = {
    "one-device": _one_device, "two-walls": _two_walls, "data": _data, "cloning": _cloning, "tensor": _tensor, "heads": _heads,
    "long-context": _long_context, "ring-attention": _ring_attention, "experts": _experts, "routing": _routing,
    "five-axes": _five_axes, "placement": _placement, "collectives": _collectives,
}
SKETCHES: dict[str, Callable[[], Sketch]] = {  # one step of a pipeline, by the simulator
    "pipeline": lambda: _sketch(1, "naive"),
    "bubble": lambda: _sketch(4, "gpipe"),
    "micro-batches": lambda: _sketch(16, "1f1b"),
}
