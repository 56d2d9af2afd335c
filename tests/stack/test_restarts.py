"""A run that loses a rank goes on under its worker, and its store holds both lives."""

from itertools import groupby

import pytest

from tests.stack.stack import wait_for
from trainer.folder import run_folder, store_folder
from trainer.lives import checkpoints_folder
from trainer.trace.store import StoreReader

pytestmark = [pytest.mark.stack, pytest.mark.timed]


def test_a_run_with_a_lost_rank_stays_running_and_finishes_with_both_lives_on_record(stack):
    run_id = stack.launch("lost-rank")
    run = stack.wait_for_state(run_id, "finished", "failed", "lost", seconds=90)
    assert run["state"] == "finished", stack.logs()
    assert run["steps_done"] == 30
    folder = run_folder(stack.home, run_id)
    wait_for(lambda: stack.run(run_id)["sealed_at"], 30, "the run to be sealed")
    reader = StoreReader(store_folder(folder))
    marks = [mark for mark in reader.marks() if mark["kind"] in ("fault", "restart")]
    assert [mark["rank"] for mark in marks if mark["kind"] == "fault"] == [1]
    restarts = [mark for mark in marks if mark["kind"] == "restart"]
    assert sorted(mark["rank"] for mark in restarts) == [0, 1, 2, 3]
    assert "Rank 1 was killed by SIGKILL in step 13." in restarts[0]["text"]
    fault_ns = next(mark["time_ns"] for mark in marks if mark["kind"] == "fault")
    rows = reader.steps()
    assert [row["step"] for row in rows] == list(range(30)) and all(row["complete"] for row in rows)
    first_again = restarts[0]["step"]
    again = [row for row in rows if row["step"] >= first_again]
    assert all(row["start_ns"] > fault_ns for row in again)
    assert again[0]["start_ns"] - fault_ns < 3e9  # going again within 3 s
    print("from the fault to the first step done again", (again[0]["start_ns"] - fault_ns) / 1e9, "s")
    assert stack.run(run_id)["figures"]["dropped_spans"] == 0
    losses = sorted(zip(*(reader.counters("loss")[name].tolist() for name in ("step", "value")), strict=True))
    by_step = {step: {loss for _, loss in group} for step, group in groupby(losses, key=lambda pair: pair[0])}
    assert sorted(by_step) == list(range(30)) and all(len(values) == 1 for values in by_step.values())
    assert len(losses) > 30  # some were done again, and came out the same to the last bit
    assert checkpoints_folder(folder).exists()


def test_a_hung_rank_is_named_by_the_runs_verdict(stack):
    run_id = stack.launch("pipeline-1f1b", "timeout_seconds=5", 'faults=[{"kind": "hang", "rank": 2, "step": 3}]')
    run = stack.wait_for_state(run_id, "failed", "finished", "lost", seconds=60)
    assert run["state"] == "failed" and run["reason"].startswith("Rank 2 did not come"), run
    assert run["failure"]["rank"] == 2


def test_a_straggler_is_named_with_its_factor(stack):
    run_id = stack.launch("straggler")
    assert stack.wait_for_state(run_id, "finished", "failed", "lost", seconds=90)["state"] == "finished", stack.logs()
    wait_for(lambda: stack.run(run_id)["sealed_at"], 30, "the run to be sealed")
    [slow] = stack.run(run_id)["figures"]["slow_ranks"]
    assert (slow["rank"], slow["from_step"]) == (2, 8)
    print("the straggler's factor, 1.5 as ordered:", slow["factor"])
    assert slow["factor"] == pytest.approx(1.5, rel=0.1)
