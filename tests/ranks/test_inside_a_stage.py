"""Ranks that share the inside of a stage, by tensors or by the sequence, train to the unsplit model's loss."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.ranks.kept import assert_gradients_are_the_whole_models, keeping_parameters
from tests.ranks.launch import Ran, Span, run
from tests.ranks.unsplit import assert_equals_one_process
from trainer.spec import JobSpec, parse
from trainer.trace.kinds import Kind

pytestmark = pytest.mark.ranks

MICRO_BATCHES, LAYERS = 2, 2
TENSOR: dict[str, Any] = {"tensor": {"sequence_parallel": False}}
SEQUENCE: dict[str, Any] = {"tensor": {"sequence_parallel": True}}
RING: dict[str, Any] = {"context": {"attention": "ring", "order": "contiguous"}}
ZIGZAG: dict[str, Any] = {"context": {"attention": "ring", "order": "zigzag"}}
EXCHANGE: dict[str, Any] = {"context": {"attention": "all_to_all"}}


def job(grid: dict[str, int], splits: dict[str, Any], **changes: Any) -> JobSpec:
    return parse({
        "model": {"name": "gpt", "layers": LAYERS, "width": 16, "heads": 4, "context": 16}, "grid": grid, "splits": splits,
        "pace": {"kind": "paced", "forward_ms": 0.1, "backward_ms": 0.1},  # its class keeps hand-offs quick on a busy machine
        "batch": 8, "steps": 20, "precision": "float64", "seed": 3, "timeout_seconds": 30.0,
        "schedule": {"name": "1f1b", "micro_batches": MICRO_BATCHES}, "optimizer": {"learning_rate": 1e-2},
    } | changes)


def assert_trains_as_one_process(ran: Ran) -> None:
    assert_equals_one_process(ran)
    ran.assert_lanes_are_in_order()
    shared = {rank for rank, kind, text in ran.marks if (kind, text) == ("parameters", "equal")}
    assert shared == set(range(ran.spec.ranks)), "and what several ranks hold stayed equal to the bit"


@pytest.mark.parametrize("splits", [TENSOR, SEQUENCE], ids=["tensor", "sequence"])
@pytest.mark.parametrize("grid", [{"tp": 2}, {"tp": 4}, {"dp": 2, "tp": 2}, {"pp": 2, "tp": 2}, {"pp": 2, "dp": 2, "tp": 2}],
                         ids=lambda grid: "·".join(f"{axis}{size}" for axis, size in grid.items()))
def test_shared_tensors(tmp_path: Path, grid: dict[str, int], splits: dict[str, Any]) -> None:
    assert_trains_as_one_process(run(job(grid, splits), tmp_path).check())


@pytest.mark.parametrize("splits", [TENSOR, SEQUENCE], ids=["tensor", "sequence"])
def test_shared_tensors_with_backwards_in_two_halves(tmp_path: Path, splits: dict[str, Any]) -> None:
    schedule = {"name": "1f1b", "micro_batches": MICRO_BATCHES, "split_backward": True}
    assert_trains_as_one_process(run(job({"pp": 2, "dp": 2, "tp": 2}, splits, schedule=schedule), tmp_path).check())


@pytest.mark.parametrize("splits", [RING, ZIGZAG, EXCHANGE], ids=["ring", "zigzag", "exchange"])
@pytest.mark.parametrize("grid", [{"cp": 2}, {"cp": 4}, {"dp": 2, "cp": 2}, {"pp": 2, "cp": 2}, {"cp": 2, "tp": 2}],
                         ids=lambda grid: "·".join(f"{axis}{size}" for axis, size in grid.items()))
def test_shared_sequences(tmp_path: Path, grid: dict[str, int], splits: dict[str, Any]) -> None:
    assert_trains_as_one_process(run(job(grid, splits), tmp_path).check())


@pytest.mark.parametrize(("grid", "splits"), [
    ({"pp": 2, "cp": 2, "tp": 2}, SEQUENCE | ZIGZAG), ({"dp": 2, "cp": 2, "tp": 2}, TENSOR | EXCHANGE),
    ({"dp": 2, "pp": 2, "cp": 2}, RING),
], ids=["pp·cp·tp", "dp·cp·tp", "dp·pp·cp"])
def test_two_ranks_on_each_of_three_axes(tmp_path: Path, grid: dict[str, int], splits: dict[str, Any]) -> None:
    schedule = {"name": "1f1b", "micro_batches": MICRO_BATCHES, "split_backward": True}
    assert_trains_as_one_process(run(job(grid, splits, schedule=schedule), tmp_path).check())


@pytest.mark.parametrize(("grid", "splits"), [
    ({"tp": 4}, TENSOR), ({"tp": 4}, SEQUENCE), ({"dp": 2, "cp": 2}, ZIGZAG), ({"cp": 4}, EXCHANGE),
    ({"dp": 2, "cp": 2, "tp": 2}, ZIGZAG | SEQUENCE), ({"pp": 2, "dp": 2, "tp": 2}, TENSOR),
    ({"pp": 2, "cp": 2, "tp": 2}, ZIGZAG),
], ids=["tensor", "sequence", "zigzag", "exchange", "dp·cp·tp", "pp·dp·tp", "pp·cp·tp"])
def test_gradients_are_the_whole_models(tmp_path: Path, grid: dict[str, int], splits: dict[str, Any]) -> None:
    spec = job(grid, splits, steps=1, optimizer={"name": "sgd", "learning_rate": 1.0})
    run(spec, tmp_path, main=keeping_parameters).check()
    assert_gradients_are_the_whole_models(spec, tmp_path)


def inside(spans: list[Span], outer: Span) -> list[Span]:
    return [span for span in spans if span.rank == outer.rank and outer.start_ns <= span.start_ns < outer.end_ns]


@pytest.mark.parametrize("splits", [TENSOR, SEQUENCE], ids=["tensor", "sequence"])
def test_a_layer_has_two_all_reduces_each_way(tmp_path: Path, splits: dict[str, Any]) -> None:
    """And the embedding one forward, the head one backward, the loss two forward (the highest score; the sums)."""
    ran = run(job({"tp": 2}, splits, steps=3), tmp_path).check()
    spans = [span for span in ran.spans if span.group == "tp" and span.step >= 0]
    crossings = 2 * LAYERS + 1
    if splits is TENSOR:
        forward = {Kind.ALL_REDUCE: crossings + 2}
        backward = {Kind.ALL_REDUCE: crossings}
    else:
        forward = {Kind.ALL_GATHER: crossings, Kind.REDUCE_SCATTER: crossings, Kind.ALL_REDUCE: 2}
        backward = {Kind.ALL_GATHER: crossings, Kind.REDUCE_SCATTER: crossings}
    for kind, expected in ((Kind.FORWARD, forward), (Kind.BACKWARD, backward)):
        outer = ran.of(kind)
        assert len(outer) == 2 * 3 * MICRO_BATCHES
        for span in outer:
            assert Counter(each.kind for each in inside(spans, span)) == expected
    between_layers = 4 * 16 * 16 * 8  # samples, context, width, bytes of a number
    assert {span.bytes for span in spans if span.kind in (Kind.ALL_GATHER, Kind.REDUCE_SCATTER)} <= {between_layers}
    in_a_step = [span for span in spans if (span.rank, span.step) == (0, 1)]
    summed = 0 if splits is TENSOR else 1  # what all hold whole has its gradients added up once a step
    assert len(in_a_step) == MICRO_BATCHES * (sum(forward.values()) + sum(backward.values())) + summed


def test_hops_around_the_ring(tmp_path: Path) -> None:
    ran = run(job({"dp": 2, "cp": 4}, RING, steps=2), tmp_path).check()
    sends, receives = ran.of(Kind.SEND), ran.of(Kind.RECEIVE)
    assert {span.group for span in sends + receives} == {"cp"}
    content = 2 * 2 * 4 * 4 * 4 * 8  # keys and values, samples, heads, tokens, head width, bytes of a number
    assert {span.bytes for span in sends + receives} == {content}
    hops = LAYERS * MICRO_BATCHES * 2  # over both steps
    for rank in range(8):
        ring = rank // 4 * 4
        assert {span.peer for span in sends if span.rank == rank} == {ring + (rank + 1) % 4}
        assert {span.peer for span in receives if span.rank == rank} == {ring + (rank - 1) % 4}
        for spans in (sends, receives):
            assert Counter(span.name for span in spans if span.rank == rank) == {
                "keys and values": hops * (3 + 3), "gradients of keys and values": hops * 4,
            }, "once around, forward and backward; gradients one hop more, home"
    ends = {(span.rank, span.peer, span.sequence, span.name) for span in sends}
    assert ends == {(span.peer, span.rank, span.sequence, span.name) for span in receives}, "every hop has both its ends"
    assert len(ends) == len(sends)
    averaged = [span for span in ran.of(Kind.ALL_REDUCE) if (span.rank, span.step) == (5, 1)]
    assert {span.group for span in averaged} == {"dp×cp"}, "copies and parts of the sequence average as one"


def test_exchanges_of_heads(tmp_path: Path) -> None:
    ran = run(job({"cp": 2}, EXCHANGE, steps=2), tmp_path).check()
    exchanges = ran.of(Kind.ALL_TO_ALL)
    assert {span.group for span in exchanges} == {"cp"}
    assert len(exchanges) == 2 * 2 * MICRO_BATCHES * LAYERS * 4, "there and back, forward and backward"
