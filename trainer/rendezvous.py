"""How the ranks of a job find each other: the process group, the groups along each axis, the run's clock."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist

from trainer.grid import AXES, Grid, averaging_axes, expert_axes
from trainer.job import RankJob
from trainer.spec import JobSpec
from trainer.splits.run_clock import RunClock
from trainer.trace.clock import ClockKeeper, ClockServer, measure
from trainer.trace.clock_line import Line, Sample
from trainer.trace.steady_clock import SteadyClock
from trainer.trace.writer import Writer

HOST = "127.0.0.1"


def join(job: RankJob, spec: JobSpec) -> dist.Store:
    """Start torch's process group; returns the store that all ranks share."""
    timeout = timedelta(seconds=spec.timeout_seconds)
    listener = job.rendezvous_fd if job.rank == 0 and job.rendezvous_fd >= 0 else None
    store = dist.TCPStore(HOST, job.rendezvous_port, spec.ranks, is_master=job.rank == 0, timeout=timeout,
                          wait_for_workers=False, master_listen_fd=listener)
    # Else gloo binds to what the machine's own name resolves to, which may be nothing or another machine.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(backend_of(spec), store=dist.PrefixStore("torch", store), rank=job.rank,
                            world_size=spec.ranks, timeout=timeout)
    return dist.PrefixStore("lockstep", store)


def backend_of(spec: JobSpec) -> str:
    """NCCL where every rank has a card of its own; it refuses two on one, which gloo takes."""
    return "nccl" if spec.device == "cuda" and spec.ranks <= torch.cuda.device_count() else "gloo"


def axis_group(grid: Grid, axes: str, rank: int, timeout_seconds: float) -> dist.ProcessGroup:
    """The group along `axes` ("pp", or several as "dp×cp") that holds `rank`. All ranks have to call, in the same order."""
    mine = None
    for ranks in grid.groups(*axes.split("×")):
        group = dist.new_group(ranks, timeout=timedelta(seconds=timeout_seconds))
        if rank in ranks:
            mine = group
    assert mine is not None
    return mine


def axis_groups(grid: Grid, rank: int, spec: JobSpec) -> dict[str, dist.ProcessGroup]:
    """By axis, for the axes that have more than one rank, and for the products that gradients are averaged over."""
    names = [axis for axis in AXES if grid.size(axis) > 1]
    products = averaging_axes(spec), expert_axes(spec)
    names += [product for product in dict.fromkeys(products) if product and product not in AXES]
    return {name: axis_group(grid, name, rank, spec.timeout_seconds) for name in names}


def message_groups(
    grid: Grid, rank: int, axes: dict[str, dist.ProcessGroup], spec: JobSpec
) -> dict[str, dist.ProcessGroup]:
    """Groups for a pipeline's activations (F) and gradients (B).

    NCCL knows no tags and takes what a pair of ranks exchanges in order. Either way by itself is in
    order of micro-batches, both together are not, so there each gets a group of its own.
    """
    if "pp" not in axes:
        return {}
    if backend_of(spec) == "gloo":
        return {"F": axes["pp"], "B": axes["pp"]}
    return {content: axis_group(grid, "pp", rank, spec.timeout_seconds) for content in ("F", "B")}


class SharedClock:
    """The run's clock on this rank: measured against rank 0's, told to the writer, measured again now and then.

    `zero_ns` is where an earlier life of the run had its zero, or 0; `keep_zero` keeps a new one for lives to come.
    """

    def __init__(self, rank: int, store: dist.Store, writer: Writer, zero_ns: int, keep_zero: Callable[[int], None]):
        self._server = ClockServer(HOST) if rank == 0 else None
        self._keeper: ClockKeeper | None = None
        if self._server is not None:
            is_first, zero_ns = not zero_ns, zero_ns or time.monotonic_ns()
            keep_zero(zero_ns)
            store.set("clock", json.dumps([*self._server.address, zero_ns]))
            self.run_clock = RunClock(zero_ns)
            if is_first:
                unix_ns = time.time_ns() - (time.monotonic_ns() - zero_ns)
                writer.mark("zero", str(unix_ns), at_ns=zero_ns)
        else:
            host, port, zero_ns = json.loads(store.get("clock"))
            self.run_clock = RunClock(zero_ns)
            self._keeper = ClockKeeper((host, port), self._applied(writer), measure((host, port)), self._telling(writer))
        writer.set_zero(zero_ns)

    def close(self) -> None:
        if self._keeper is not None:
            self._keeper.close()
        if self._server is not None:
            self._server.close()

    def _applied(self, writer: Writer) -> Callable[[Line], None]:
        steady: SteadyClock | None = None

        def apply(line: Line) -> None:
            nonlocal steady
            steady = SteadyClock.of(line) if steady is None else steady.towards(line, time.monotonic_ns())
            self.run_clock.steady = steady
            writer.set_clock(steady)

        return apply

    def _telling(self, writer: Writer) -> Callable[[Sample, Sample], None]:
        def tell(before: Sample, after: Sample) -> None:
            jumped_ms = (before.offset_ns - after.offset_ns) / 1e6
            within_seconds = (after.local_ns + after.offset_ns - before.local_ns - before.offset_ns) / 1e9  # by rank 0's clock
            writer.mark("clock", f"jumped by {jumped_ms:+,.3f} ms against rank 0's within the last {within_seconds:.1f} s; "
                                 "times from then until now may be out by that much")

        return tell


def device_of(job: RankJob, spec: JobSpec) -> torch.device:
    if spec.device == "cpu":
        return torch.device("cpu")
    device = torch.device("cuda", job.rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device
