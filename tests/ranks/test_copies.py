"""Whichever way copies share their work, they train to the unsplit model's loss and parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import trainer.rank
from tests.ranks.launch import Ran, Span, apart, run
from tests.ranks.test_inside_a_stage import joined
from tests.ranks.unsplit import assert_equals_one_process, unsplit_end
from trainer.grid import Grid
from trainer.job import Control, RankJob
from trainer.spec import JobSpec, parse
from trainer.trace.kinds import Kind
from trainer.training import Training

pytestmark = pytest.mark.ranks

MODES = ["ddp", "zero-1", "zero-2", "zero-3", "parameter-server", "everyone"]
LAYERS, MICRO_BATCHES, STEPS = 2, 2, 20
UNITS = LAYERS + 2  # what is gathered at once: a block, the embedding, the head
STEP = 2  # one that is like any other


def job(mode: str, grid: dict[str, int], **changes: Any) -> JobSpec:
    return parse({
        "model": {"name": "gpt", "layers": LAYERS, "width": 16, "heads": 2, "context": 8}, "grid": grid,
        "splits": {"data": {"mode": mode}, "tensor": {"sequence_parallel": True}},
        "pace": {"kind": "paced", "forward_ms": 0.1, "backward_ms": 0.1},  # its class keeps hand-offs quick on a busy machine
        "batch": 16, "steps": STEPS, "precision": "float64", "seed": 3, "timeout_seconds": 30.0,
        "schedule": {"name": "1f1b", "micro_batches": MICRO_BATCHES}, "optimizer": {"learning_rate": 1e-2},
    } | changes)


def keeping(job: RankJob, control: Control) -> int:
    """A rank that leaves its parameters, whole, in its folder when it is done."""
    prove_equal = Training.prove_equal

    def keep(training: Training) -> bool:
        torch.save(training.copies.whole(), job.folder / f"parameters-{job.rank}.pt")
        return prove_equal(training)

    Training.prove_equal = keep  # type: ignore[method-assign]
    return trainer.rank.main(job, control)


def in_whole_model(name: str, spec: JobSpec) -> str:
    """The name in the unsplit model of "stage.layer.…": the first stage has the embedding in front."""
    stage, layer, rest = name.split(".", 2)
    stages = spec.grid.pp * spec.schedule.chunks
    first = int(stage) * (spec.model.layers // stages) + bool(int(stage))
    return f"{first + int(layer)}.{rest}"


def assert_parameters_are_one_processs(spec: JobSpec, folder: Path) -> None:
    expected, found = apart(unsplit_end, spec), set()
    by_rank: list[dict[str, Tensor]] = [torch.load(folder / f"parameters-{rank}.pt") for rank in range(spec.ranks)]
    for ranks in Grid.of(spec.grid).groups("tp"):
        for name in by_rank[ranks[0]]:
            whole = joined([by_rank[rank][name] for rank in ranks], name) if len(ranks) > 1 else by_rank[ranks[0]][name]
            place = in_whole_model(name, spec)
            # Adam divides by gradients' size: where that is rounding, so is what it makes of it.
            np.testing.assert_allclose(whole.numpy(), expected[place], rtol=1e-9, atol=1e-7)
            found.add(place)
    assert found == set(expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("grid", [{"dp": 2}, {"dp": 4}, {"dp": 2, "pp": 2}, {"dp": 2, "tp": 2}, {"dp": 2, "cp": 2}, {"cp": 2}],
                         ids=lambda grid: "·".join(f"{axis}{size}" for axis, size in grid.items()))
def test_trains_as_one_process(tmp_path: Path, mode: str, grid: dict[str, int]) -> None:
    spec = job(mode, grid)
    ran = run(spec, tmp_path, main=keeping).check()
    assert_equals_one_process(ran)
    ran.assert_lanes_are_in_order()
    assert {rank for rank, kind, text in ran.marks if (kind, text) == ("parameters", "equal")} == set(range(spec.ranks))
    assert_parameters_are_one_processs(spec, tmp_path)
