"""Whatever a JobSpec accepts runs to its end, and trains and takes as much memory as is said; what it refuses does not run."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import trainer.rank
from tests.any_spec import changed, jobs, refusals, runnable
from tests.ranks.launch import Ran, run
from tests.ranks.unsplit import of_one_process, unsplit_losses
from trainer import misfits
from trainer.grid import Grid
from trainer.job import Control, RankJob
from trainer.memory import predicted
from trainer.spec import JobSpec

pytestmark = pytest.mark.ranks

# What fails is told as it was found: to look for the simplest such job takes as many runs as the search.
STABLE = settings(derandomize=True, database=None, deadline=None, phases=[Phase.generate])
RELATIVE = 1e-9  # of float64's losses
MOST_REFUSED_RANKS = 6

# Fields that a part of the search breaks one by one, where that is what cannot run. Others are refused for what they would
# mean: a text or a fault that nothing would come of, a server that is not there, what nobody would wait for or could watch,
# one chunk under a schedule of several (which then is another), heads of 8/3 features (there would be four of them).
BREAKABLE = (
    "model.layers", "model.context", "model.experts", "model.top_k",
    "grid.dp", "grid.pp", "grid.cp", "grid.tp", "grid.ep", "batch",
    "splits.data.mode", "splits.tensor.sequence_parallel", "splits.context.attention", "splits.context.order",
    "schedule.name", "schedule.micro_batches", "schedule.split_backward", "schedule.layers",
)
LIKE_ANY_OTHER: dict[str, Any] = {
    "precision": "float64", "pace": {"kind": "paced", "forward_ms": 0.1, "backward_ms": 0.1}, "timeout_seconds": 5.0, "steps": 2,
    "faults": [], "placement": {}, "optimizer": {"learning_rate": 0.01},
}


@settings(STABLE, max_examples=15)
@given(runnable(4))
def test_what_is_accepted_runs(tmp_path_factory: pytest.TempPathFactory, spec: JobSpec) -> None:
    ran = run(spec, tmp_path_factory.mktemp("any")).check()
    assert len(ran.losses) == spec.steps
    assert all(map(math.isfinite, ran.losses))
    ran.assert_lanes_are_in_order()
    if spec.precision == "float64":
        assert ran.losses == pytest.approx(of_one_process(unsplit_losses, spec), rel=RELATIVE, abs=0)
    assert_memory_is_as_predicted(ran)


def assert_memory_is_as_predicted(ran: Ran) -> None:
    """Where there are formulas, of each place's rank with most: a parameter server has more than the copies it serves."""
    grid, most = Grid.of(ran.spec.grid), {}
    for (rank, kind), told in ran.memory.items():
        place = grid.address(rank).pp
        most[place, kind] = max(most.get((place, kind), 0.0), max(value for _, value in told))
    for place, expected in enumerate(predicted(ran.spec)):
        assert {kind: most[place, kind] for kind in asdict(expected)} == asdict(expected), f"place {place}"


@settings(STABLE, max_examples=100)
@given(runnable(4), jobs, st.sampled_from(BREAKABLE))
def test_what_is_refused_does_not_run(tmp_path_factory: pytest.TempPathFactory, spec: JobSpec, other: dict[str, Any],
                                      field: str) -> None:
    """A job that runs, but for one field as another job has it, if that is refused; most are not. It fails or learns wrongly."""
    refused = broken(spec, other, field)
    if refused is None:
        return
    folder = tmp_path_factory.mktemp("refused")
    try:
        ran = run(refused, folder, main=unchecked)
    except FileNotFoundError:  # ranks that the machine had no room for left no log
        return
    if ran.codes == [0] * refused.ranks:
        assert not learns_rightly(ran), f"{refusals(refused.model_dump(mode='json'))}, and it runs"


def broken(spec: JobSpec, other: dict[str, Any], field: str) -> JobSpec | None:
    """None where that is no other job, or fits too."""
    job, value = spec.model_dump(mode="json") | LIKE_ANY_OTHER, found(other, field)
    if value is None or found(job, field) is None or refusals(job):
        return None
    job = changed(job, field, value)
    refused, errors = JobSpec.model_validate(job), refusals(job)
    by_name = any(error.field == "schedule.chunks" and "a rank holds" in error.message for error in errors)
    return refused if errors and not by_name and 1 < refused.ranks <= MOST_REFUSED_RANKS else None


def found(job: Any, path: str) -> Any:
    for part in path.split("."):
        job = job.get(part) if job is not None else None
    return job


def unchecked(job: RankJob, control: Control) -> int:
    """A rank that takes what it gets."""
    misfits.complaints = lambda spec: []  # type: ignore[assignment]
    return trainer.rank.main(job, control)


def learns_rightly(ran: Ran) -> bool:
    try:
        expected = of_one_process(unsplit_losses, ran.spec)
    except EOFError:
        return False  # there is no such model
    return "loss" in ran.counters and ran.losses == pytest.approx(expected, rel=RELATIVE, abs=0)
