"""Faults to order, and what becomes of the job: real ranks under a real host, killed, hung, slow or with a message lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.ranks.hosted import Hosted, rank_host, run_hosted
from tests.ranks.launch import run
from trainer.ends import TIMED_OUT, cause_of
from trainer.spec import JobSpec, parse
from trainer.trace.kinds import Kind

pytestmark = [pytest.mark.ranks, pytest.mark.timed]

JOB: dict[str, Any] = {
    "model": {"name": "gpt", "layers": 4, "width": 16, "heads": 2, "context": 8}, "grid": {"pp": 2, "dp": 2},
    "schedule": {"name": "1f1b", "micro_batches": 4}, "batch": 16, "steps": 10, "precision": "float64",
}


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    with rank_host() as name:
        yield name


def job(**changes: Any) -> JobSpec:
    return parse({**JOB, **changes})


def steps_of(hosted: Hosted, rank: int) -> list[int]:
    return [span.step for span in hosted.ran.of(Kind.STEP) if span.rank == rank]


def settled(host: str, spec: JobSpec, folder: Path) -> Hosted:
    hosted = run_hosted(host, spec, folder)
    assert [end.code for end in hosted.exits] == [0] * spec.ranks, "\n".join(hosted.ran.logs)
    return hosted


@pytest.mark.parametrize("changes", [
    {}, {"grid": {"pp": 2, "tp": 2}, "batch": 8}, {"grid": {"dp": 2}, "splits": {"data": {"mode": "zero-1"}}},
    {"grid": {"dp": 2}, "splits": {"data": {"mode": "zero-3"}}},
    {"grid": {"dp": 2}, "splits": {"data": {"mode": "parameter-server"}}},
    {"grid": {"ep": 2}, "model": {**JOB["model"], "name": "moe", "experts": 4}},
    {"grid": {"pp": 4}, "schedule": {"name": "dualpipe", "micro_batches": 8}},
    {"grid": {"dp": 3}, "batch": 24, "collectives": {"all_reduce": "ring"}},
    {"grid": {"dp": 3}, "batch": 24, "collectives": {"all_reduce": "ring"}, "splits": {"data": {"bucket_mb": 0.01}}},
], ids=["pp×dp", "pp×tp", "zero-1", "zero-3", "parameter-server", "experts", "both ways", "three copies",
        "three copies in many buckets"])
def test_a_killed_rank_costs_steps_and_changes_nothing(host: str, tmp_path: Path, changes: dict[str, Any]) -> None:
    kill = [{"kind": "kill", "rank": 1, "step": 6}]
    whole = settled(host, job(**changes), tmp_path / "whole")
    lost = settled(host, job(**changes, checkpoint_every=2, restarts=1, faults=kill), tmp_path / "lost")
    assert lost.ran.losses == whole.ran.losses  # to the last bit
    restarts = {text for _, kind, text in lost.ran.marks if kind == "restart"}
    assert len(restarts) == 1
    (said,) = restarts
    assert "Rank 1 was killed by SIGKILL in step 6." in said
    began = lost.moment("started", 1)
    print("from the kill to the ranks' new start", began - lost.moment("exit"), "s")
    first = int(said.rsplit("from the checkpoint before step ", 1)[1].split(":")[0])
    assert first in (2, 4, 6)  # the newest checkpoint that was whole when the rank was killed
    for rank in range(lost.ran.spec.ranks):
        assert steps_of(lost, rank)[first - 10:] == list(range(first, 10)), "each from there on, once more"
    assert began - lost.moment("exit") < 3.0


def test_the_second_life_goes_on_counting_frames_and_time(host: str, tmp_path: Path) -> None:
    kills = [{"kind": "kill", "rank": 0, "step": 4}, {"kind": "kill", "rank": 3, "step": 8}]
    spec = job(checkpoint_every=3, restarts=2, faults=kills)
    hosted = settled(host, spec, tmp_path)
    for numbers in hosted.frames:
        assert numbers == sorted(set(numbers))
    assert hosted.frames[1] == list(range(1, len(hosted.frames[1]) + 1))  # it was never killed, so nothing is missing
    hosted.ran.assert_lanes_are_in_order()
    assert [message["life"] for _, message in hosted.heard if message["type"] == "restarted"] == [1, 2]
    assert len([kind for _, kind, _ in hosted.ran.marks if kind == "zero"]) == 1


def test_a_job_without_restarts_left_ends(host: str, tmp_path: Path) -> None:
    hosted = run_hosted(host, job(faults=[{"kind": "kill", "rank": 2, "step": 3}]), tmp_path)
    cause = cause_of(hosted.exits)
    assert cause is not None and cause.words == "Rank 2 was killed by SIGKILL in step 3."
    assert (2, "fault", "rank 2 is killed") in hosted.ran.marks


@pytest.mark.parametrize("own", [False, True], ids=["backend", "ring"])
def test_a_hung_rank_is_named_when_the_time_out_is_over(host: str, tmp_path: Path, own: bool) -> None:
    collectives = {"all_reduce": "ring"} if own else {}
    hang = [{"kind": "hang", "rank": 2, "step": 3}]
    hosted = run_hosted(host, job(timeout_seconds=5, faults=hang, collectives=collectives), tmp_path)
    cause = cause_of(hosted.exits)
    assert cause is not None and cause.rank == 2 and "Rank 2 did not come" in cause.words, hosted.exits
    assert TIMED_OUT in [end.code for end in hosted.exits]
    assert hosted.moment("done") - hosted.moment("started") > 5.0


def busy_ms(ran: Any, rank: int, steps: range) -> float:
    by_step = [sum(span.end_ns - span.start_ns for span in ran.of(Kind.FORWARD, Kind.BACKWARD)
                   if span.rank == rank and span.step == step) for step in steps]
    return median(by_step) / 1e6


def test_a_slow_rank_takes_as_much_longer_as_was_ordered(tmp_path: Path) -> None:
    slow = [{"kind": "slow-rank", "rank": 1, "step": 3, "factor": 1.5}]
    paced = {"kind": "paced", "forward_ms": 10.0, "backward_ms": 20.0}
    ran = run(job(grid={"pp": 2}, batch=8, steps=6, pace=paced, faults=slow), tmp_path).check()
    assert busy_ms(ran, 1, range(3, 6)) / busy_ms(ran, 1, range(3)) == pytest.approx(1.5, rel=0.1)
    assert busy_ms(ran, 0, range(3, 6)) / busy_ms(ran, 0, range(3)) == pytest.approx(1.0, rel=0.1)


def test_a_lost_message_is_sent_again_and_changes_nothing(tmp_path: Path) -> None:
    lost = [{"kind": "lost-message", "rank": 0, "step": 2, "resend_ms": 150.0}]
    whole = run(job(grid={"pp": 2}, batch=8, steps=4), tmp_path / "whole").check()
    ran = run(job(grid={"pp": 2}, batch=8, steps=4, faults=lost), tmp_path / "lost").check()
    assert ran.losses == whole.losses
    first, again = [next(span for span in ran.of(Kind.SEND) if span.name.endswith(end)) for end in ("· lost", "· sent again")]
    assert (first.rank, first.step, first.micro_batch) == (again.rank, again.step, again.micro_batch) == (0, 2, 0)
    assert again.start_ns - first.start_ns >= 150e6
    waits = [span for span in ran.of(Kind.WAIT) if (span.rank, span.step, span.micro_batch) == (1, 2, 0)]
    assert max(span.end_ns - span.start_ns for span in waits) > 100e6
    ran.assert_lanes_are_in_order()
