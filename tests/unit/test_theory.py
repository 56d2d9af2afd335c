"""The bubble's formulas against known values, and against the simulator."""

from __future__ import annotations

import subprocess
import sys

import pytest

from trainer.emulate.pace import durations_ms
from trainer.schedules import SCHEDULES, schedule_of
from trainer.schedules.simulate import simulate
from trainer.schedules.theory import bubble_formula, bubble_share, ideal_formula, ideal_share
from trainer.spec import Gpt, GridSpec, JobSpec, Pace, ScheduleSpec


def job(
    name: str, stages: int, micro_batches: int, split: bool = False, forward_ms: float = 20, backward_ms: float = 40
) -> JobSpec:
    return JobSpec(
        model=Gpt(layers=24), grid=GridSpec(pp=stages),
        schedule=ScheduleSpec.model_validate({"name": name, "micro_batches": micro_batches, "split_backward": split}),
        pace=Pace(kind="paced", forward_ms=float(forward_ms), backward_ms=float(backward_ms)),
    )


@pytest.mark.parametrize(("name", "stages", "micro_batches", "share", "ideal"), [
    ("gpipe", 4, 8, 3 / 11, 3 / 8),
    ("1f1b", 4, 8, 3 / 11, 3 / 8),
    ("1f1b", 8, 32, 7 / 39, 7 / 32),  # 21 of 117 slots
    ("gpipe", 4, 1, 3 / 4, 3),
    ("naive", 4, 8, 3 / 4, 3),
    ("1f1b", 1, 8, 0, 0),
    ("naive", 1, 3, 0, 0),
])
def test_known_values(name: str, stages: int, micro_batches: int, share: float, ideal: float) -> None:
    assert bubble_share(job(name, stages, micro_batches)) == pytest.approx(share, abs=1e-12)
    assert ideal_share(job(name, stages, micro_batches)) == pytest.approx(ideal, abs=1e-12)


@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 4), (2, 1), (3, 5), (4, 8), (4, 2), (8, 16)])
@pytest.mark.parametrize("name", SCHEDULES)
def test_formulas_meet_the_simulator(name: str, stages: int, micro_batches: int, split: bool) -> None:
    for forward_ms, backward_ms in ((20.0, 40.0), (20.0, 50.0), (30.0, 30.0)):
        spec = job(name, stages, micro_batches, split, forward_ms, backward_ms)
        simulated = simulate(schedule_of(spec), durations_ms(spec.pace))
        assert bubble_share(spec) == pytest.approx(simulated.bubble_share, abs=1e-12)


def test_formulas_as_they_are_shown() -> None:
    assert bubble_formula(job("1f1b", 4, 8)) == "(p−1)/(m+p−1) = 3/11"
    assert ideal_formula(job("1f1b", 4, 8)) == "(p−1)/m = 3/8"
    assert bubble_formula(job("naive", 4, 8)) == "(p−1)/p = 3/4"
    assert ideal_formula(job("naive", 4, 8)) == "p−1 = 3"
    assert bubble_formula(job("1f1b", 4, 8, split=True)) == "(p−1)(F+I)/(m(F+B)+(p−1)(F+I)) = 1/5"
    assert ideal_formula(job("naive", 4, 8, split=True)) == "(p−1)(F+I)/(F+B) = 2"
    assert bubble_formula(job("1f1b", 1, 8)) == ideal_formula(job("1f1b", 1, 8)) == "no pipeline, no bubble: 0"
    assert bubble_formula(job("1f1b", 8, 7, split=True, forward_ms=20.123)).endswith(" = 0.4002")


def test_schedules_and_theory_load_without_torch() -> None:
    program = "import sys, trainer.schedules, trainer.schedules.theory; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
