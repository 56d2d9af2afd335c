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
from tests.ranks.unsplit import assert_equals_one_process
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
        "batch": 2 * micro_batches * grid.get("dp", 1), "steps": steps, "precision": "float64", "seed": 3, "timeout_seconds": 30.0,
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


@pytest.mark.parametrize("grid", [{"pp": 2, "dp": 2}, {"pp": 4, "dp": 2}, {"pp": 2, "tp": 2}, {"pp": 2, "cp": 2}, {"pp": 2, "dp": 2, "tp": 2}],
                         ids=lambda grid: "·".join(f"{axis}{size}" for axis, size in grid.items()))
def test_products(tmp_path: Path, grid: dict[str, int]) -> None:
    spec = job(grid)
    assert_trains_as_one_process(spec, tmp_path)
    assert_copies_are_equal(spec, tmp_path)
