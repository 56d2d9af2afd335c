"""The copies of a job's stages, by the way they share their work."""

from __future__ import annotations

import torch.distributed as dist
from torch import nn

from trainer.emulate.links import Links
from trainer.spec import DataSplit
from trainer.splits.copies import Copies, alone, averaged
from trainer.splits.exchange import Everyone, Exchange, ParameterServer
from trainer.splits.run_clock import RunClock
from trainer.splits.sharded import Sharded
from trainer.trace.row import Add


def copies_of(split: DataSplit, modules: nn.ModuleDict, group: dist.ProcessGroup | None, axis: str,
              clock: RunClock, add: Add, links: Links | None) -> Copies:
    """This rank's copy of its stages, `modules`, among those of `group`, which `axis` names; without a group the only one."""
    if group is None:
        return alone(modules)
    match split.mode:
        case "ddp":
            return averaged(modules, group, axis, split.bucket_mb)
        case "zero-1" | "zero-2" | "zero-3":
            return Sharded(modules, group, axis, split.mode)
        case "parameter-server":
            return ParameterServer(modules, Exchange(group, axis, clock, add, links), group)
        case "everyone":
            return Everyone(modules, Exchange(group, axis, clock, add, links), group)
