"""Runs on a real worker: queue, stop, ladder, Redis that goes away."""

import os
import signal
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.stack.stack import Stack, wait_for
from trainer.folder import run_folder, store_folder
from trainer.trace.kinds import Kind
from trainer.trace.store import StoreReader

pytestmark = [pytest.mark.stack, pytest.mark.timed]


@pytest.fixture(autouse=True)
def left_idle(stack: Stack) -> Iterator[None]:
    """A test that fails leaves no run that the next one would wait for."""
    yield
    going = "[run.pk for run in Run.objects.filter(ended_at=None)]"
    for run_id in stack.python(going):
        stack.python(f"services.stop({run_id!r})")
    wait_for(lambda: not stack.python(going), 30, "all runs to have ended")


def test_a_run_finishes_and_all_of_it_is_sealed(stack):
    run_id = stack.launch("pipeline-1f1b", "steps=3")
    run = stack.wait_for_state(run_id, "finished", "failed", "lost")
    assert run["state"] == "finished" and run["steps_done"] == 3, stack.logs()
    sealed = wait_for(lambda: stack.run(run_id)["sealed_at"] and stack.run(run_id), 15, "the recorder to seal it")
    assert sealed["figures"]["spans"] > 0 and sealed["figures"]["dropped_spans"] == 0


def test_a_second_run_waits_at_place_one_until_the_first_ends(stack):
    first = stack.launch("pipeline-1f1b", "steps=2000")
    stack.wait_for_state(first, "running")
    second = stack.launch("pipeline-1f1b", "steps=2")
    place = f"services.place_in_queue(Run.objects.get(pk={second!r}))"
    assert stack.run(second)["state"] == "queued" and stack.python(place) == 1
    workers = "[(w.runs, w.ranks_free, w.host_ready) for w in fleet.workers()]"  # as they said last, once a second
    wait_for(lambda: stack.python(workers) == [[[first], 0, True]], 5, "the worker to say what it runs")
    stack.stop_run(first)
    assert stack.wait_for_state(first, "stopped")["reason"] == "Stopped on request."
    assert stack.wait_for_state(second, "finished", "failed")["state"] == "finished"


def test_a_stop_keeps_what_the_run_has_done(stack):
    run_id = stack.launch("pipeline-1f1b", "steps=2000")
    wait_for(lambda: stack.run(run_id)["steps_done"] >= 2, 20, "two steps")
    stack.stop_run(run_id)
    run = stack.wait_for_state(run_id, "stopped")
    assert 2 <= run["steps_done"] < 2000 and run["failure"] is None
    wait_for(lambda: stack.run(run_id)["sealed_at"], 15, "the recorder to seal it")
    assert stack.run(run_id)["figures"]["spans"] > 0


def test_a_queued_run_can_be_stopped_and_never_starts(stack):
    first = stack.launch("pipeline-1f1b", "steps=2000")
    stack.wait_for_state(first, "running")
    second = stack.launch("pipeline-1f1b")
    stack.stop_run(second)
    assert stack.run(second)["reason"] == "Stopped before it began."
    stack.stop_run(first)
    stack.wait_for_state(first, "stopped")
    third = stack.launch("pipeline-1f1b", "steps=1")
    stack.wait_for_state(third, "finished")
    assert stack.run(second)["state"] == "stopped" and not stack.run(second)["started_at"]


def test_a_rank_that_does_not_answer_is_killed_at_the_last_rung(stack):
    run_id = stack.launch("pipeline-1f1b", "steps=2000")
    stack.wait_for_state(run_id, "running")
    ranks = stack.ranks()
    os.kill(ranks[1], signal.SIGSTOP)
    stack.stop_run(run_id)
    run = stack.wait_for_state(run_id, "stopped", seconds=30)
    assert run["reason"] == "Stopped on request. Its ranks did not end when asked and were killed."
    assert not set(ranks) & set(stack.processes())


def test_a_task_that_comes_twice_starts_one_run(stack):
    run_id = stack.launch("pipeline-1f1b", "steps=20")
    stack.wait_for_state(run_id, "running")
    stack.python(f"door.put_in_queue({run_id!r}, 'cpu')")
    assert stack.wait_for_state(run_id, "finished", "failed")["state"] == "finished"
    after = stack.launch("pipeline-1f1b", "steps=1")
    stack.wait_for_state(after, "finished")
    assert f"run {run_id} is not waiting any more" in (stack.home / "logs" / "worker.log").read_text()
    assert stack.run(run_id)["steps_done"] == 20


def test_a_run_whose_task_was_lost_is_put_in_the_queue_again(stack):
    spec = "PRESETS['pipeline-1f1b'].spec.model_copy(update={'steps': 2})"
    run_id = stack.python(f"Run.objects.create(name='forgotten', device='cpu', spec_json={spec}.model_dump()).pk")
    assert stack.wait_for_state(run_id, "finished", "failed", seconds=60)["state"] == "finished"


def test_more_ranks_than_the_worker_allows_fail_with_both_numbers(stack):
    spec = "JobSpec(grid=GridSpec(dp=65), batch=65 * 8)"
    run_id = stack.python(f"services.launch({spec}, None).pk")
    run = stack.wait_for_state(run_id, "failed")
    assert "65 ranks" in run["reason"] and "at most 64" in run["reason"]


def test_ranks_that_cannot_start_fail_the_run_with_their_log(stack):
    """The text for a job for CUDA comes from the rank itself, on a machine that has none."""
    spec = "PRESETS['pipeline-1f1b'].spec.model_copy(update={'timeout_seconds': 5.0, 'device': 'cuda'})"
    run_id = stack.python(f"Run.objects.create(name='no gpu', device='cpu', spec_json={spec}.model_dump()).pk")
    run = stack.wait_for_state(run_id, "failed", seconds=40)
    assert "ended with exit code 1 before its first step" in run["reason"]
    assert "Error" in run["failure"]["log_tail"]


def test_redis_killed_in_the_middle_costs_no_span(stack):
    run_id = stack.launch("pipeline-1f1b", "steps=20")
    wait_for(lambda: stack.run(run_id)["steps_done"] >= 3, 40, "three steps")
    os.kill(stack.pid_of("redis"), signal.SIGKILL)
    run = stack.wait_for_state(run_id, "finished", "failed", "lost")
    assert run["state"] == "finished", stack.logs()
    wait_for(lambda: stack.run(run_id)["sealed_at"], 30, "the recorder to seal it")
    assert stack.run(run_id)["figures"]["dropped_spans"] == 0
    kinds = recorded_kinds(stack, run_id)
    for kind in (Kind.FORWARD, Kind.BACKWARD):
        assert kinds[kind] == 4 * 8 * 20  # ranks, micro-batches, steps
    assert kinds[Kind.STEP] == 4 * 20
    after = stack.launch("pipeline-1f1b", "steps=1")
    assert stack.wait_for_state(after, "finished", "failed")["state"] == "finished"


def recorded_kinds(stack: Stack, run_id: str) -> Counter[int]:
    """How many spans of each kind are on disk."""
    reader = StoreReader(store_folder(run_folder(stack.home, run_id)))
    found: Counter[int] = Counter()
    for segment in reader.segments:
        for frame in reader.segment_frames(segment):
            found.update(frame.spans["kind"].tolist())
    return found
