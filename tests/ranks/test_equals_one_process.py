"""Any split of a model trains to the unsplit model's loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ranks.launch import run
from tests.ranks.unsplit import assert_equals_one_process
from trainer.spec import Gpt, GridSpec, JobSpec, OptimizerSpec, Pace, Perceptron, ScheduleSpec
from trainer.trace.kinds import Kind

pytestmark = pytest.mark.ranks

STEPS = 8
GPT = Gpt(layers=4, width=16, heads=2, context=12)
BRISK = Pace(kind="paced", forward_ms=0.1, backward_ms=0.1)  # its class keeps hand-offs quick on a busy machine


def job(model: Gpt | Perceptron, grid: GridSpec, schedule: str, micro_batches: int = 4, split: bool = False,
        optimizer: str = "adamw", batch: int = 16) -> JobSpec:
    return JobSpec.model_validate({
        "model": model, "grid": grid, "pace": BRISK, "batch": batch, "steps": STEPS,
        "precision": "float64", "seed": 3, "timeout_seconds": 30.0,
        "schedule": ScheduleSpec.model_validate({"name": schedule, "micro_batches": micro_batches, "split_backward": split}),
        "optimizer": OptimizerSpec.model_validate({"name": optimizer, "learning_rate": 1e-2}),
    })


@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
@pytest.mark.parametrize("schedule", ["naive", "gpipe", "1f1b"])
def test_pipeline_of_four_stages(tmp_path: Path, schedule: str, split: bool) -> None:
    assert_equals_one_process(run(job(GPT, GridSpec(pp=4), schedule, split=split), tmp_path).check())


@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
def test_two_stages_times_two_copies(tmp_path: Path, split: bool) -> None:
    ran = run(job(GPT, GridSpec(dp=2, pp=2), "1f1b", split=split), tmp_path).check()
    assert_equals_one_process(ran)
    ran.assert_lanes_are_in_order()
    assert {rank for rank, kind, text in ran.marks if (kind, text) == ("parameters", "equal")} == {0, 1, 2, 3}


@pytest.mark.parametrize("micro_batches", [1, 4])
def test_four_copies_reading_digits(tmp_path: Path, micro_batches: int) -> None:
    spec = job(Perceptron(), GridSpec(dp=4), "gpipe", micro_batches, batch=64)
    ran = run(spec, tmp_path).check()
    assert_equals_one_process(ran)
    for rank in range(4):
        for step in range(STEPS):
            reduced = [s for s in ran.of(Kind.ALL_REDUCE) if (s.rank, s.step) == (rank, step)]
            assert [s.bytes for s in reduced] == [13_002 * 8, 8], "one bucket of gradients a step, and the loss"
            assert {s.group for s in reduced} == {"dp"}


def test_perceptron_in_a_pipeline_with_plain_gradient_descent(tmp_path: Path) -> None:
    spec = job(Perceptron(hidden_layers=3), GridSpec(pp=4), "1f1b", split=True, optimizer="sgd")
    assert_equals_one_process(run(spec, tmp_path).check())
