"""A process group with the probe and our algorithms on it, for scripts that call torch.distributed as anybody does."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from trainer.collectives.own import OwnCollectives
from trainer.emulate.links import Links
from trainer.job import RankJob
from trainer.probes.c10d import CollectiveProbe
from trainer.spec import CollectivesSpec, parse
from trainer.trace.in_order import InOrder
from trainer.trace.kinds import Kind, Lane
from trainer.trace.row import Rows


class Probed:
    """`rows` grow as collectives complete, `steps` with their sends and receives, `said` with what "auto" chose.

    `choices` are the algorithms by collective; whoever changes them does so on all ranks.
    """

    def __init__(self, job: RankJob, links: Links | None = None, timeout_seconds: float = 20):
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        torch.set_num_threads(1)
        self.rank, self.ranks = job.rank, parse(job.spec_json).ranks
        self.store = dist.TCPStore("127.0.0.1", job.rendezvous_port, self.ranks, job.rank == 0, wait_for_workers=False,
                                   master_listen_fd=job.rendezvous_fd if job.rank == 0 else None)
        dist.init_process_group("gloo", store=self.store, rank=job.rank, world_size=self.ranks,
                                timeout=timedelta(seconds=timeout_seconds))
        assert dist.group.WORLD is not None
        self.rows, self.steps, self.said = Rows(), Rows(), list[str]()
        self.choices: dict[str, Any] = CollectivesSpec().model_dump()
        own = OwnCollectives(self.choices, InOrder(self.steps.add, Lane.POINT_TO_POINT), self.said.append, links)
        self.probe = CollectiveProbe(self.rows.add, {dist.group.WORLD.group_name: "everyone"}, lambda: 5, own)
        self.probe.install()

    def seen(self) -> list[tuple[Kind, int]]:
        """Kind and bytes of what was called since the last time."""
        assert self.probe.settle()
        rows, self.rows[:] = list(self.rows), []
        return [(Kind(row[0]), row[7]) for row in rows]
