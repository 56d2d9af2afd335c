"""Our AllReduces beside the backend's on this machine: `python -m trainer.collectives.bench`, one JSON object.

Every algorithm takes its turn in each round, so that what else the machine does falls on all alike.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from datetime import timedelta
from statistics import median
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing

from trainer.collectives.own import OwnCollectives
from trainer.collectives.plans import ALGORITHMS
from trainer.probes.c10d import CollectiveProbe
from trainer.spec import CollectivesSpec
from trainer.trace.row import Rows

RANKS = 4
BACKEND = "backend"
ROUNDS = {"1KB": (1 << 10, 200), "64KB": (1 << 16, 200), "1MB": (1 << 20, 60), "16MB": (16 << 20, 15)}  # bytes, rounds


def main() -> None:
    """Print seconds by size and algorithm: of the slowest rank, the median of all rounds."""
    listener = dist.TCPStore("127.0.0.1", 0, RANKS + 1, is_master=True, wait_for_workers=False)
    torch.multiprocessing.spawn(_rank, (listener.port,), RANKS)
    print(listener.get("seconds").decode())


def _rank(rank: int, port: int) -> None:
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, RANKS + 1, is_master=False)
    dist.init_process_group("gloo", store=dist.PrefixStore("torch", store), rank=rank, world_size=RANKS,
                            timeout=timedelta(seconds=60))
    rows = Rows()
    choices: dict[str, Any] = CollectivesSpec().model_dump()
    probe = CollectiveProbe(rows.add, {}, lambda: 0, OwnCollectives(choices, rows.add, lambda text: None))
    probe.install()
    found = {name: _measure(choices, rows, *sizes) for name, sizes in ROUNDS.items()}
    probe.remove()
    if rank == 0:
        store.set("seconds", json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


def _measure(choices: dict[str, Any], rows: Rows, size_bytes: int, rounds: int) -> dict[str, float]:
    taken: dict[str, list[float]] = defaultdict(list)
    array = torch.empty(size_bytes // 4)
    for number in range(rounds + 3):  # of which three to warm up
        for name in (BACKEND, *ALGORITHMS["all_reduce"]):
            array.fill_(1.0)
            choices["all_reduce"] = BACKEND
            dist.barrier()
            choices["all_reduce"] = name
            began = time.perf_counter()
            dist.all_reduce(array)
            took = time.perf_counter() - began
            assert array[0] == array[-1] == RANKS, f"{name} gave {array[0]}"
            if number >= 3:
                taken[name].append(took)
        rows.clear()
    names = list(taken)
    slowest = torch.tensor([taken[name] for name in names])
    choices["all_reduce"] = BACKEND
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return {name: median(row.tolist()) for name, row in zip(names, slowest, strict=True)}


if __name__ == "__main__":
    main()
