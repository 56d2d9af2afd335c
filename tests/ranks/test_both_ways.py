"""DualPipe: micro-batches enter at both ends of the ranks, and both copies of every stage stay one and the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.ranks.kept import assert_gradients_are_the_whole_models, keeping_parameters
from tests.ranks.launch import Ran, run
from tests.ranks.test_copies import assert_parameters_are_one_processs, keeping
from tests.ranks.test_equals_one_process import assert_did_what_the_schedule_says
from tests.ranks.test_experts import assert_counts_as_one_process, words
from tests.ranks.unsplit import assert_equals_one_process, of_one_process, unsplit_norms
from trainer.grid import MIRROR, Grid
from trainer.schedules import stages_of
from trainer.spec import JobSpec, parse
from trainer.trace.kinds import Kind

pytestmark = pytest.mark.ranks


def job(grid: dict[str, int], micro_batches: int = 0, layers: int = 4, steps: int = 20, **changes: Any) -> JobSpec:
    micro_batches = micro_batches or 2 * grid["pp"]
    return parse({
        "model": {"name": "gpt", "layers": layers, "width": 16, "heads": 2, "context": 8}, "grid": grid,
        "pace": {"kind": "paced", "forward_ms": 0.1, "backward_ms": 0.1},  # its class keeps hand-offs quick on a busy machine
        "batch": 2 * micro_batches * grid.get("dp", 1), "steps": steps, "precision": "float64", "seed": 3,
        "timeout_seconds": 30.0,
        "schedule": {"name": "dualpipe", "micro_batches": micro_batches}, "optimizer": {"learning_rate": 1e-2},
    } | changes)


def assert_trains_as_one_process(spec: JobSpec, folder: Path) -> Ran:
    ran = run(spec, folder, main=keeping).check()
    assert_equals_one_process(ran)
    ran.assert_lanes_are_in_order()
    assert {rank for rank, kind, text in ran.marks if (kind, text) == ("parameters", "equal")} == set(range(spec.ranks))
    assert_parameters_are_one_processs(spec, folder)
    return ran


def assert_copies_are_equal(spec: JobSpec, folder: Path) -> None:
    """To the last bit, whichever way their micro-batches went."""
    grid, stages = Grid.of(spec.grid), stages_of(spec)
    for ranks in grid.groups("dp", "cp", MIRROR):
        assert len(ranks) == spec.averaging_ranks
        first, *others = (torch.load(folder / f"parameters-{rank}.pt") for rank in ranks)
        assert {int(name.split(".")[0]) for name in first} == set(stages[grid.address(ranks[0]).pp])
        for other in others:
            assert first.keys() == other.keys() and all(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
@pytest.mark.parametrize(("ranks", "micro_batches"), [(2, 4), (4, 8), (4, 10)])
def test_alone(tmp_path: Path, ranks: int, micro_batches: int, split: bool) -> None:
    schedule = {"name": "dualpipe", "micro_batches": micro_batches, "split_backward": split}
    spec = job({"pp": ranks}, micro_batches, schedule=schedule)
    ran = assert_trains_as_one_process(spec, tmp_path)
    assert_copies_are_equal(spec, tmp_path)
    assert_did_what_the_schedule_says(ran)


@pytest.mark.parametrize("grid", [
    {"pp": 2, "dp": 2}, {"pp": 4, "dp": 2}, {"pp": 2, "tp": 2}, {"pp": 2, "cp": 2}, {"pp": 2, "dp": 2, "tp": 2},
], ids=words)
def test_products(tmp_path: Path, grid: dict[str, int]) -> None:
    spec = job(grid)
    assert_trains_as_one_process(spec, tmp_path)
    assert_copies_are_equal(spec, tmp_path)


@pytest.mark.parametrize("mode", ["zero-1", "zero-2", "parameter-server", "everyone"])
@pytest.mark.parametrize("grid", [{"pp": 2, "dp": 2}, {"pp": 4}], ids=words)
def test_both_copies_share_as_other_copies_do(tmp_path: Path, grid: dict[str, int], mode: str) -> None:
    spec = job(grid, steps=8, splits={"data": {"mode": mode}})
    assert_trains_as_one_process(spec, tmp_path)
    assert_copies_are_equal(spec, tmp_path)


@pytest.mark.parametrize("changes", [
    {"schedule": {"name": "dualpipe", "micro_batches": 8, "layers": [1, 2, 2, 3]}, "layers": 8},
    {"checkpointing": "layer"},
    {"model": {"name": "perceptron", "hidden_layers": 3}, "optimizer": {"name": "sgd", "learning_rate": 0.3}},
], ids=["cut by hand", "layers run again", "perceptron"])
def test_stages_of_other_kinds(tmp_path: Path, changes: dict[str, Any]) -> None:
    ran = run(job({"pp": 4}, steps=8, **changes), tmp_path).check()
    assert_equals_one_process(ran)
    ran.assert_lanes_are_in_order()


@pytest.mark.parametrize("grid", [{"pp": 4}, {"pp": 2, "dp": 2}], ids=words)
def test_gradients_are_the_whole_models(tmp_path: Path, grid: dict[str, int]) -> None:
    spec = job(grid, steps=1, optimizer={"name": "sgd", "learning_rate": 1.0})
    ran = run(spec, tmp_path, main=keeping_parameters).check()
    assert_gradients_are_the_whole_models(spec, tmp_path)
    for rank, held in enumerate(stages_of(spec) * spec.grid.dp):
        sums = [span for span in ran.of(Kind.ALL_REDUCE) if span.rank == rank and span.bytes > 8]
        assert len(sums) == len(held) == 2, "one of each stage's gradients"
        assert {span.group for span in sums} == {"dp×mirror" if spec.grid.dp > 1 else "mirror"}


@pytest.mark.parametrize("mode", ["ddp", "zero-1"])
@pytest.mark.parametrize("grid", [{"pp": 4}, {"pp": 2}, {"pp": 2, "dp": 2}, {"pp": 2, "tp": 2}], ids=words)
def test_each_parameter_counts_once_where_gradients_are_clipped(tmp_path: Path, grid: dict[str, int], mode: str) -> None:
    recipe = {"learning_rate": 1e-2, "weight_decay": 0.1, "clip_norm": 0.5}
    spec = job(grid, steps=8, optimizer=recipe, splits={"data": {"mode": mode}})
    ran = run(spec, tmp_path).check()
    assert_equals_one_process(ran)
    expected = of_one_process(unsplit_norms, spec)
    assert [norm for _, norm in sorted(ran.counters["grad_norm"].items())] == pytest.approx(expected, rel=1e-9, abs=0)
    assert max(expected) > recipe["clip_norm"], "some of them were clipped"


def test_where_both_ranks_have_all_stages_the_length_costs_no_message(tmp_path: Path) -> None:
    spec = job({"pp": 2}, steps=3)
    ran = run(spec, tmp_path).check()
    assert list(ran.counters["grad_norm"].values()) == pytest.approx(of_one_process(unsplit_norms, spec), rel=1e-9, abs=0)
    assert {span.group for span in ran.of(Kind.ALL_REDUCE)} == {MIRROR}


@pytest.mark.parametrize("grid", [{"pp": 2}, {"pp": 2, "ep": 2}, {"pp": 2, "dp": 2, "ep": 2}], ids=words)
def test_mixtures_of_experts(tmp_path: Path, grid: dict[str, int]) -> None:
    """Both ways' routers are counted, and their experts are averaged with those of the other way."""
    model = {"name": "moe", "layers": 2, "width": 16, "heads": 2, "context": 16, "experts": 4, "capacity_factor": 0.6,
             "balance": 0.1}
    spec = job(grid, 4, batch=16, model=model)
    ran = run(spec, tmp_path).check()
    assert_equals_one_process(ran)
    ran.assert_lanes_are_in_order()
    assert_counts_as_one_process(ran)


def test_a_span_says_which_way_its_micro_batch_goes(tmp_path: Path) -> None:
    spec = job({"pp": 4}, steps=2)
    ran = run(spec, tmp_path).check()
    for span in ran.of(Kind.FORWARD, Kind.BACKWARD, Kind.BACKWARD_INPUT, Kind.BACKWARD_WEIGHT):
        is_down = span.stage == span.rank
        assert span.name.endswith(f"{span.micro_batch}{'↓' if is_down else '↑'}")
        assert is_down == (span.micro_batch < 4)
    for span in ran.of(Kind.SEND):
        assert span.peer - span.rank == (1 if (span.name[0] == "F") == span.name.endswith("↓") else -1)


def test_by_algorithms_and_links_of_ours(tmp_path: Path) -> None:
    spec = job({"pp": 4}, steps=4, links={"kind": "modelled", "slow_down": 1.0}, placement={"gpus_per_server": 2},
               collectives={"all_reduce": "ring", "all_gather": "auto", "reduce_scatter": "auto", "all_to_all": "auto"})
    ran = run(spec, tmp_path).check()
    assert_equals_one_process(ran)
    ran.assert_lanes_are_in_order()
    assert {span.peer for span in ran.of(Kind.SEND) if (span.rank, span.group) == (1, MIRROR)} == {2}
