"""The probe sees collectives of any script, with all their options intact."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from tests.ranks.launch import run
from trainer.job import Control, RankJob
from trainer.probes.c10d import CollectiveProbe
from trainer.probes.optimizer import OptimizerProbe
from trainer.spec import GridSpec, JobSpec, Perceptron
from trainer.trace.kinds import Kind
from trainer.trace.packer.plain import Packer
from trainer.trace.row import Rows

pytestmark = [pytest.mark.ranks, pytest.mark.timed]

RANKS = 2
JOB = JobSpec(model=Perceptron(), grid=GridSpec(dp=RANKS), batch=16)


class Probed:
    """A process group with the probe on it; `rows` grow as collectives complete."""

    def __init__(self, job: RankJob):
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        torch.set_num_threads(1)
        store = dist.TCPStore("127.0.0.1", job.rendezvous_port, RANKS, job.rank == 0, wait_for_workers=False,
                              master_listen_fd=job.rendezvous_fd if job.rank == 0 else None)
        dist.init_process_group("gloo", store=store, rank=job.rank, world_size=RANKS, timeout=timedelta(seconds=20))
        assert dist.group.WORLD is not None
        self.rank, self.rows = job.rank, Rows()
        self.probe = CollectiveProbe(self.rows.add, {dist.group.WORLD.group_name: "everyone"}, lambda: 5)
        self.probe.install()

    def seen(self) -> list[tuple[Kind, int]]:
        """Kind and bytes of what was called since the last time."""
        assert self.probe.settle()
        rows, self.rows[:] = list(self.rows), []
        return [(Kind(row[0]), row[7]) for row in rows]


def plain(job: RankJob, control: Control) -> int:
    probed = Probed(job)
    rank, four = job.rank, torch.arange(4.0)

    def check(mine: torch.Tensor, expected: list[float], kind: Kind, size: int) -> None:
        assert mine.flatten().tolist() == expected
        assert probed.seen() == [(kind, size)]

    mine = four + rank
    dist.all_reduce(mine)
    check(mine, [1, 3, 5, 7], Kind.ALL_REDUCE, 16)
    mine = four + rank
    dist.all_reduce(mine, op=dist.ReduceOp.MAX)
    check(mine, [1, 2, 3, 4], Kind.ALL_REDUCE, 16)
    mine = four + rank
    dist.broadcast(mine, src=1)
    check(mine, [1, 2, 3, 4], Kind.BROADCAST, 16)
    mine = four + rank
    dist.reduce(mine, dst=1, op=dist.ReduceOp.PRODUCT)
    if rank == 1:
        assert mine.tolist() == [0, 2, 6, 12]
    assert probed.seen() == [(Kind.REDUCE, 16)]
    parts = [torch.empty(4), torch.empty(4)]
    dist.all_gather(parts, four + rank)
    check(torch.cat(parts), [0, 1, 2, 3, 1, 2, 3, 4], Kind.ALL_GATHER, 32)
    whole = torch.empty(8)
    dist.all_gather_single(whole, four + rank)
    check(whole, [0, 1, 2, 3, 1, 2, 3, 4], Kind.ALL_GATHER, 32)
    half = torch.empty(2)
    dist.reduce_scatter_single(half, four + rank)
    check(half, [[1, 3], [5, 7]][rank], Kind.REDUCE_SCATTER, 16)
    half = torch.empty(2)
    dist.reduce_scatter(half, list((four + rank).split(2)), op=dist.ReduceOp.MIN)
    check(half, [[0, 1], [2, 3]][rank], Kind.REDUCE_SCATTER, 16)
    mine = torch.empty(4)
    dist.all_to_all_single(mine, four + 10 * rank)
    check(mine, [[0, 1, 10, 11], [2, 3, 12, 13]][rank], Kind.ALL_TO_ALL, 16)
    dist.gather(four + rank, parts if rank == 1 else None, dst=1)
    check(torch.cat(parts), [0, 1, 2, 3, 1, 2, 3, 4], Kind.GATHER, 32)
    mine = torch.empty(4)
    dist.scatter(mine, [four, four + 5] if rank == 0 else None, src=0)
    check(mine, [[0, 1, 2, 3], [5, 6, 7, 8]][rank], Kind.SCATTER, 32)
    dist.barrier()
    assert probed.seen() == [(Kind.BARRIER, 0)]

    work = dist.all_reduce(mine, async_op=True)
    assert work is not None
    work.wait()
    dist.all_reduce(mine)
    assert probed.probe.settle()
    assert [row[8] for row in probed.rows] == [12, 13], "sequence numbers in the group count every collective"
    assert {(row[3], row[9], row[10]) for row in probed.rows} == {(5, "all-reduce", "everyone")}
    assert probed.rows[0][2] <= probed.rows[1][1], "spans of the lane do not overlap"

    other = dist.new_group([0, 1])
    probed.seen()
    dist.all_reduce(mine, group=other)
    assert probed.probe.settle()
    assert [(row[8], row[10]) for row in probed.rows] == [(0, other.group_name)], "a group without a name keeps torch's"

    probed.probe.remove()
    probed.rows.clear()
    dist.all_reduce(mine)
    assert probed.rows == [], "after its removal torch's own kernels run"
    return 0


def frameworks(job: RankJob, control: Control) -> int:
    probed = Probed(job)
    summed = functional.all_reduce(torch.ones(3), "sum", dist.group.WORLD)
    assert (summed + 0).tolist() == [2, 2, 2]
    assert probed.seen() == [(Kind.ALL_REDUCE, 12)]

    packer = Packer()
    optimizer_probe = OptimizerProbe(packer, lambda: 5)
    optimizer_probe.install()
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    probed.seen()
    model(torch.ones(2, 4) * job.rank).sum().backward()
    optimizer.step()
    assert probed.seen() == [(Kind.ALL_REDUCE, 20 * 4)]
    assert model.module.weight.grad is not None
    assert model.module.weight.grad[0].tolist() == [1, 1, 1, 1], "the mean of 0 and 2"
    assert [(row[0], row[3], row[9]) for row in packer.rows] == [(Kind.OPTIMIZER, 5, "SGD")]
    optimizer_probe.remove()
    optimizer.step()
    assert len(packer) == 1
    return 0


def overlapping(job: RankJob, control: Control) -> int:
    probed = Probed(job)
    works = [dist.all_reduce(torch.ones(1 << 18), async_op=True) for _ in range(8)]
    for work in works:
        assert work is not None
        work.wait()
    probed.probe.remove()
    assert len(probed.rows) == 8
    for before, after in zip(probed.rows, probed.rows[1:], strict=False):
        assert before[1] <= before[2] <= after[1]
    return 0


def of_tensors_that_nobody_keeps(job: RankJob, control: Control) -> int:
    """A backend's thread frees such a tensor when it is done with it, and needs Python's global lock for that."""
    probed = Probed(job)
    for _ in range(500):
        dist.all_reduce(torch.ones(64))
        dist.all_gather_single(torch.empty(64 * RANKS), torch.ones(64))
    assert len(probed.seen()) == 1000
    mesh = init_device_mesh("cpu", (RANKS,))
    whole = torch.arange(64.0)
    probed.seen()
    for _ in range(300):
        assert torch.equal(distribute_tensor(whole, mesh, [Shard(0)], src_data_rank=None).full_tensor(), whole)
        scattered = functional.reduce_scatter_single(torch.ones(64), "sum", 0, dist.group.WORLD)
        assert (scattered + 0).tolist() == [RANKS] * (64 // RANKS)
    assert Counter(kind for kind, _ in probed.seen()) == {Kind.ALL_GATHER: 300, Kind.REDUCE_SCATTER: 300}
    return 0


def other_warnings(job: RankJob, control: Control) -> int:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        Probed(job)
        warnings.warn("still heard", UserWarning, stacklevel=1)
    assert [str(warning.message) for warning in said] == ["still heard"]
    return 0


SCRIPTS = [plain, frameworks, overlapping, of_tensors_that_nobody_keeps, other_warnings]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_the_probe_beneath(script: object, tmp_path: Path) -> None:
    ran = run(JOB, tmp_path, main=script)  # type: ignore[arg-type]
    ran.check()
