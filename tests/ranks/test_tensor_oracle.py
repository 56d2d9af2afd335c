"""Tensor parallel layers do what torch's own DTensor does with the same plan."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from tests.ranks.launch import run
from trainer.job import Control, RankJob
from trainer.models.linear import Linear
from trainer.models.seeded import seeded
from trainer.probes.c10d import CollectiveProbe
from trainer.spec import GridSpec, JobSpec
from trainer.splits.peers import Peers
from trainer.splits.tensor import ColumnLinear, Region, RowLinear
from trainer.trace.kinds import Kind
from trainer.trace.row import Rows

pytestmark = pytest.mark.ranks

WIDTH, RANKS = 8, 2


def feed_forward() -> nn.Sequential:
    layers = seeded(3, 0, torch.float64, lambda: nn.Sequential(Linear(WIDTH, 4 * WIDTH), nn.GELU(), Linear(4 * WIDTH, WIDTH)))
    assert isinstance(layers, nn.Sequential)
    return layers


def both(job: RankJob, control: Control) -> int:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", job.rendezvous_port, RANKS, job.rank == 0, wait_for_workers=False,
                          master_listen_fd=job.rendezvous_fd if job.rank == 0 else None)
    dist.init_process_group("gloo", store=store, rank=job.rank, world_size=RANKS, timeout=timedelta(seconds=20))
    theirs, ours = feed_forward(), feed_forward()
    parallelize_module(theirs, DeviceMesh("cpu", list(range(RANKS))), {"0": ColwiseParallel(), "2": RowwiseParallel()})
    region = Region(Peers(RANKS, job.rank, dist.group.WORLD), sequence_parallel=False)
    ours[0], ours[2] = ColumnLinear(ours[0], region), RowLinear(ours[2], region)
    rows = Rows()
    probe = CollectiveProbe(rows.add, {}, lambda: 0)
    probe.install()
    results = []
    for layers in (theirs, ours):
        rows.clear()
        inputs = torch.linspace(-1, 1, 3 * WIDTH, dtype=torch.float64).view(3, WIDTH).requires_grad_()
        output = layers(inputs)
        output.square().sum().backward()
        assert probe.settle()
        assert [Kind(row[0]) for row in rows] == [Kind.ALL_REDUCE] * 2, "one forward, one backward"
        gradients = [parameter.grad for parameter in layers.parameters()]
        local = [one.to_local() if isinstance(one, DTensor) else one for one in gradients]
        results.append([output.detach(), inputs.grad, *local])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)
    return 0


def test_column_and_row_are_dtensors(tmp_path: Path) -> None:
    run(JobSpec(grid=GridSpec(tp=RANKS)), tmp_path, main=both).check()
