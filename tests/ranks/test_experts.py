"""Ranks that share the experts of every layer train to the unsplit model's loss, with dropped tokens and without."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.ranks.kept import assert_gradients_are_the_whole_models, keeping_parameters
from tests.ranks.launch import Ran, Span, run
from tests.ranks.unsplit import assert_equals_one_process, of_one_process, unsplit_norms, unsplit_tallies
from trainer.spec import JobSpec, Moe, parse
from trainer.trace.kinds import Kind

pytestmark = pytest.mark.ranks

MICRO_BATCHES, LAYERS, EXPERTS = 2, 2, 4
SCARCE, PLENTY = 0.6, 4.0  # capacity factors: with the latter an expert has room for every token
ZIGZAG: dict[str, Any] = {"context": {"attention": "ring", "order": "zigzag"}}
SPLIT_BACKWARD: dict[str, Any] = {"name": "1f1b", "micro_batches": MICRO_BATCHES, "split_backward": True}


def job(grid: dict[str, int], capacity: float = SCARCE, model: dict[str, Any] | None = None, **changes: Any) -> JobSpec:
    return parse({
        "model": {"name": "moe", "layers": LAYERS, "width": 16, "heads": 2, "context": 16, "experts": EXPERTS,
                  "capacity_factor": capacity, "balance": 0.1} | (model or {}),
        "grid": grid, "pace": {"kind": "paced", "forward_ms": 0.1, "backward_ms": 0.1},
        "batch": 8, "steps": 20, "precision": "float64", "seed": 3, "timeout_seconds": 30.0,
        "schedule": {"name": "1f1b", "micro_batches": MICRO_BATCHES}, "optimizer": {"learning_rate": 1e-2},
    } | changes)


def words(grid: dict[str, int]) -> str:
    return "·".join(f"{axis}{size}" for axis, size in grid.items())


def assert_trains_as_one_process(ran: Ran) -> None:
    assert_equals_one_process(ran)
    ran.assert_lanes_are_in_order()
    shared = {rank for rank, kind, text in ran.marks if (kind, text) == ("parameters", "equal")}
    assert shared == set(range(ran.spec.ranks)), "and what several ranks hold stayed equal to the bit"


def assert_counts_as_one_process(ran: Ran) -> None:
    """Loads and dropped tokens exactly, penalties to rounding, of every layer and step."""
    assert isinstance(ran.spec.model, Moe)
    for step, layers in enumerate(of_one_process(unsplit_tallies, ran.spec)):
        for layer, (*tokens, penalty) in enumerate(layers):
            for expert in range(EXPERTS):
                assert ran.counters[f"expert_load/{layer}/{expert}"][step] == tokens[expert]
                assert ran.counters[f"expert_dropped/{layer}/{expert}"][step] == tokens[EXPERTS + expert]
            assert ran.counters[f"expert_penalty/{layer}"][step] == pytest.approx(penalty, rel=1e-9)
            assert sum(tokens) == ran.spec.batch * ran.spec.model.context * ran.spec.model.top_k
            assert (sum(tokens[EXPERTS:]) > 0) == (ran.spec.model.capacity_factor == SCARCE)


@pytest.mark.parametrize("capacity", [SCARCE, PLENTY], ids=["scarce", "plenty"])
@pytest.mark.parametrize("grid", [{"ep": 2}, {"ep": 4}, {"dp": 2, "ep": 2}, {"ep": 2, "pp": 2}], ids=words)
def test_shared_experts(tmp_path: Path, grid: dict[str, int], capacity: float) -> None:
    ran = run(job(grid, capacity), tmp_path).check()
    assert_trains_as_one_process(ran)
    assert_counts_as_one_process(ran)


@pytest.mark.parametrize(("grid", "changes"), [
    pytest.param({"ep": 2, "tp": 2}, {}, id="tensors"),
    pytest.param({"ep": 2, "pp": 2}, {"optimizer": {"name": "sgd", "learning_rate": 0.3}}, id="stages by plain descent"),
    pytest.param({"ep": 2, "cp": 2}, {"splits": ZIGZAG}, id="ring"),
    pytest.param({"ep": 2, "cp": 2}, {"splits": {"context": {"attention": "all_to_all"}}}, id="heads"),
    pytest.param({"ep": 2, "pp": 2, "tp": 2}, {"schedule": SPLIT_BACKWARD}, id="stages and tensors"),
    pytest.param({"dp": 2, "ep": 2, "pp": 2}, {"schedule": SPLIT_BACKWARD}, id="copies and stages"),
    pytest.param({"dp": 2, "ep": 2, "cp": 2}, {"splits": ZIGZAG}, id="copies and ring"),
    pytest.param({"ep": 4}, {"model": {"top_k": 1}}, id="one expert a token"),
    pytest.param({"dp": 2, "ep": 2}, {"checkpointing": "layer"}, id="forwards run again"),
])
def test_experts_in_products(tmp_path: Path, grid: dict[str, int], changes: dict[str, Any]) -> None:
    ran = run(job(grid, **changes), tmp_path).check()
    assert_trains_as_one_process(ran)
    assert_counts_as_one_process(ran)


@pytest.mark.parametrize(("grid", "changes"), [
    ({"pp": 2}, {}), ({"dp": 2}, {}), ({"tp": 2}, {}), ({"cp": 2}, {"splits": ZIGZAG}),
], ids=["stages", "copies", "tensors", "ring"])
def test_whole_mixtures_in_every_other_split(tmp_path: Path, grid: dict[str, int], changes: dict[str, Any]) -> None:
    ran = run(job(grid, **changes), tmp_path).check()
    assert_equals_one_process(ran)
    assert_counts_as_one_process(ran)


@pytest.mark.parametrize("capacity", [SCARCE, PLENTY], ids=["scarce", "plenty"])
@pytest.mark.parametrize(("grid", "changes"), [
    ({"ep": 4}, {}), ({"dp": 2, "ep": 2}, {}), ({"ep": 2, "tp": 2}, {}), ({"ep": 2, "cp": 2}, {"splits": ZIGZAG}),
    ({"dp": 2, "ep": 2, "tp": 2}, {"schedule": SPLIT_BACKWARD}),
], ids=["experts", "copies", "tensors", "ring", "copies and tensors"])
def test_gradients_are_the_whole_models(tmp_path: Path, grid: dict[str, int], changes: dict[str, Any], capacity: float) -> None:
    spec = job(grid, capacity, steps=1, optimizer={"name": "sgd", "learning_rate": 1.0}, **changes)
    run(spec, tmp_path, main=keeping_parameters).check()
    assert_gradients_are_the_whole_models(spec, tmp_path)


def inside(spans: list[Span], outer: Span) -> list[Span]:
    return [span for span in spans if span.rank == outer.rank and outer.start_ns <= span.start_ns < outer.end_ns]


def test_a_layer_has_two_exchanges_each_way(tmp_path: Path) -> None:
    spec = job({"dp": 2, "ep": 2}, steps=2)
    assert isinstance(spec.model, Moe)
    ran = run(spec, tmp_path).check()
    exchanges = ran.of(Kind.ALL_TO_ALL)
    assert {span.group for span in exchanges} == {"ep"}
    samples = spec.micro_batch_samples
    assert {span.bytes for span in exchanges} == {EXPERTS * samples * spec.model.capacity * spec.model.width * 8}
    for kind in (Kind.FORWARD, Kind.BACKWARD):
        outer = ran.of(kind)
        assert len(outer) == 4 * 2 * MICRO_BATCHES
        assert {len(inside(exchanges, span)) for span in outer} == {2 * LAYERS}
    assert len(exchanges) == 4 * 2 * MICRO_BATCHES * 4 * LAYERS, "and none outside of them"
    reduced = Counter((span.group, span.bytes) for span in ran.of(Kind.ALL_REDUCE) if (span.rank, span.step) == (3, 1))
    an_expert = 16 * 64 + 64 + 64 * 16 + 16
    assert reduced["dp", LAYERS * EXPERTS // 2 * an_expert * 8] == 1, "a rank's experts with the same ones elsewhere"
    assert {group for group, _ in reduced} == {"dp×ep", "dp"}


def test_a_heavier_penalty_evens_the_load(tmp_path: Path) -> None:
    """The penalty is in what is trained, on a stage that does not know the loss too."""
    penalties = []
    for name, balance in (("none", 0.0), ("much", 1.0)):
        spec = job({"ep": 2, "pp": 2}, model={"balance": balance})
        counters = run(spec, tmp_path / name).check().counters
        late = [[counters[f"expert_penalty/{layer}"][step] for step in range(10, 20)] for layer in range(LAYERS)]
        penalties.append(np.mean(late, axis=1))
    assert all(much < 0.9 * none for none, much in zip(*penalties, strict=True)), penalties


@pytest.mark.parametrize("grid", [{"ep": 2}, {"dp": 2, "ep": 2}, {"ep": 2, "tp": 2}, {"ep": 2, "pp": 2}], ids=words)
def test_experts_count_in_the_length_of_the_gradient(tmp_path: Path, grid: dict[str, int]) -> None:
    spec = job(grid, optimizer={"learning_rate": 1e-2, "clip_norm": 0.5})
    ran = run(spec, tmp_path).check()
    assert_trains_as_one_process(ran)
    expected = of_one_process(unsplit_norms, spec)
    assert [norm for _, norm in sorted(ran.counters["grad_norm"].items())] == pytest.approx(expected, rel=1e-9, abs=0)
    assert max(expected) > 0.5, "some of them were clipped"
