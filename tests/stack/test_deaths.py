"""Whatever is killed, no rank stays behind and the run says what became of it."""

import os
import signal
import time

import pytest

from tests.stack.stack import Stack, children_of, processes_of, running_stack, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.timed]

LONG = ("steps=2000",)


def a_running_run(stack: Stack) -> tuple[str, list[int]]:
    run_id = stack.launch("pipeline-1f1b", *LONG)
    stack.wait_for_state(run_id, "running")
    ranks = stack.ranks()
    assert len(ranks) == 4
    return run_id, ranks


def assert_gone(stack: Stack, pids: list[int]) -> None:
    wait_for(lambda: not set(pids) & set(stack.processes()), 3, f"{pids} to be gone")


def assert_a_run_finishes(stack: Stack) -> None:
    run_id = stack.launch("pipeline-1f1b", "steps=2")
    assert stack.wait_for_state(run_id, "finished", "failed", "lost")["state"] == "finished", stack.logs()


def test_a_killed_worker_leaves_no_rank_and_its_run_is_lost_within_ten_seconds(stack):
    run_id, ranks = a_running_run(stack)
    worker = stack.pid_of("worker")
    family = [*ranks, *children_of(worker, stack.home)]
    killed_at = time.monotonic()
    os.kill(worker, signal.SIGKILL)
    assert_gone(stack, family)
    run = stack.wait_for_state(run_id, "lost", seconds=10)
    assert time.monotonic() - killed_at < 10
    assert f"process {worker}" in run["reason"] and "the whole worker is gone" in run["reason"]
    assert_a_run_finishes(stack)


def test_a_killed_pool_process_takes_its_ranks_with_it_and_the_run_is_lost(stack):
    run_id, ranks = a_running_run(stack)
    child = stack.pool_child()
    os.kill(child, signal.SIGKILL)
    assert_gone(stack, ranks)
    run = stack.wait_for_state(run_id, "lost", seconds=10)
    assert f"({child} of worker" in run["reason"] and "still there" in run["reason"]
    assert_a_run_finishes(stack)


def test_a_killed_rank_host_takes_its_ranks_with_it_and_is_started_again(stack):
    run_id, ranks = a_running_run(stack)
    os.kill(stack.rank_host(), signal.SIGKILL)
    assert_gone(stack, ranks)
    run = stack.wait_for_state(run_id, "failed", seconds=10)
    assert "rank host" in run["reason"]
    assert_a_run_finishes(stack)


def test_a_killed_rank_fails_the_run_with_its_number_signal_and_log(stack):
    run_id, ranks = a_running_run(stack)
    os.kill(ranks[2], signal.SIGKILL)
    run = stack.wait_for_state(run_id, "failed", seconds=15)
    assert run["reason"].startswith("Rank 2 was killed by SIGKILL in step ")
    assert run["failure"]["rank"] == 2 and run["failure"]["signal"] == "SIGKILL" and run["failure"]["exit_code"] is None
    assert "rank 2 of 4, pp 2: process " in run["failure"]["log_tail"]
    assert_gone(stack, ranks)


def test_a_killed_stack_leaves_no_process():
    with running_stack() as other:
        run_id = other.launch("pipeline-1f1b", *LONG)
        other.wait_for_state(run_id, "running")
        assert len(other.ranks()) == 4
        other.process.kill()
        other.process.wait()
        wait_for(lambda: not processes_of(other.home), 5, "every process of the stack to be gone")
        again = other.manage("doctor", "--json", status=None)
        assert "the last stack was killed" in again.stdout


def test_a_stack_that_is_told_to_end_stops_its_run_with_a_reason():
    with running_stack() as other:
        run_id = other.launch("pipeline-1f1b", *LONG)
        other.wait_for_state(run_id, "running")
        asked_at = time.monotonic()
        assert other.stop() == 0
        assert time.monotonic() - asked_at < 15
        run = other.run(run_id)
        assert run["state"] == "stopped" and "was shut down" in run["reason"], other.logs()
        assert not processes_of(other.home)
        assert not (other.home / "redis-url").exists() and not (other.home / "stack.json").exists()
