"""How ranks end before their last step: asked to stop, told to terminate, or because something is wrong."""

from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from tests.ranks.launch import Ran, run
from trainer.ends import STOPPED, TERMINATED
from trainer.job import Control, RankJob
from trainer.spec import Gpt, GridSpec, JobSpec, Pace, Perceptron, ScheduleSpec
from trainer.splits.data import prove_equal
from trainer.trace.kinds import Kind

pytestmark = [pytest.mark.ranks, pytest.mark.timed]

LONG = JobSpec(
    model=Gpt(layers=4, width=16, heads=2, context=8), grid=GridSpec(pp=2, dp=2), batch=16, steps=10_000,
    schedule=ScheduleSpec(name="1f1b", micro_batches=4), pace=Pace(kind="paced", forward_ms=2.0, backward_ms=4.0),
)


def wait_until_step(control: Control, step: int) -> None:
    end = time.monotonic() + 60
    while min(control.steps()) < step and time.monotonic() < end:
        time.sleep(0.01)


def stop_at_step_three(control: Control, pids: list[int]) -> None:
    wait_until_step(control, 3)
    control.request_stop()


def stop_before_the_start(control: Control, pids: list[int]) -> None:
    control.request_stop()


def terminate_at_step_three(control: Control, pids: list[int]) -> None:
    wait_until_step(control, 3)
    for pid in pids:
        os.kill(pid, signal.SIGTERM)


def terminate_beside_a_halted_rank(control: Control, pids: list[int]) -> None:
    """Its peers wait for it deep inside gloo, where no Python handler would run."""
    wait_until_step(control, 3)
    os.kill(pids[-1], signal.SIGSTOP)
    time.sleep(0.5)  # nothing tells when they have come to wait inside gloo; a step takes a tenth of this
    leaving = [os.pidfd_open(pid) for pid in pids[:-1]]
    for pid in pids[:-1]:
        os.kill(pid, signal.SIGTERM)
    for process in leaving:
        select.select([process], [], [], 10.0)
        os.close(process)
    os.kill(pids[-1], signal.SIGKILL)


def steps_done(ran: Ran) -> list[int]:
    return [len([s for s in ran.of(Kind.STEP) if s.rank == rank]) for rank in range(ran.spec.ranks)]


def test_a_stop_ends_all_ranks_after_the_same_step(tmp_path: Path) -> None:
    ran = run(LONG, tmp_path, stop_at_step_three)
    assert ran.codes == [STOPPED] * 4, "\n".join(ran.logs)
    done = steps_done(ran)
    assert len(set(done)) == 1
    assert 4 <= done[0] < LONG.steps
    assert len(ran.losses) == done[0]
    assert {rank for rank, kind, _ in ran.marks if kind == "parameters"} == {0, 1, 2, 3}


def test_a_stop_before_the_first_step_lets_two_be_done(tmp_path: Path) -> None:
    ran = run(LONG, tmp_path, stop_before_the_start)
    assert ran.codes == [STOPPED] * 4, "\n".join(ran.logs)
    assert set(steps_done(ran)) == {2}


def test_a_terminated_rank_keeps_what_it_recorded(tmp_path: Path) -> None:
    ran = run(LONG, tmp_path, terminate_at_step_three)
    assert ran.codes[0] == TERMINATED
    assert min(steps_done(ran)) >= 3


def test_a_rank_that_waits_for_a_halted_one_still_leaves(tmp_path: Path) -> None:
    ran = run(LONG, tmp_path, terminate_beside_a_halted_rank)
    assert ran.codes == [TERMINATED] * 3 + [-signal.SIGKILL]
    assert min(steps_done(ran)[:3]) >= 3


def compare_unequal_copies(job: RankJob, control: Control) -> int:
    """Ranks that hold a model whose last bias differs on rank 2 by one bit."""
    store = dist.TCPStore("127.0.0.1", job.rendezvous_port, 3, job.rank == 0, wait_for_workers=False,
                          master_listen_fd=job.rendezvous_fd if job.rank == 0 else None)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", store=store, rank=job.rank, world_size=3)
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
    for parameter in module.parameters():
        torch.nn.init.ones_(parameter)
    if job.rank == 2:
        module[1].bias.data.view(torch.int32).bitwise_xor_(1)
    assert dist.group.WORLD is not None
    prove_equal(dict(module.named_parameters()), dist.group.WORLD)
    return 0


def test_copies_that_differ_by_one_bit_are_an_error_that_names_them(tmp_path: Path) -> None:
    ran = run(JobSpec(model=Perceptron(), grid=GridSpec(dp=3), batch=24), tmp_path, main=compare_unequal_copies)
    assert ran.codes == [1, 1, 1]
    assert all("ranks 0 and 2 hold different values of 1.bias" in log for log in ran.logs)
