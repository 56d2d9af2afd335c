"""The checks of `check.sh`, each a function that returns what it saw, or raises."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import torch.distributed as dist

from tests.ranks.launch import Ran, apart, run
from tests.ranks.unsplit import unsplit_losses
from trainer.memory import predicted
from trainer.probes.c10d import CollectiveProbe
from trainer.probes.stopwatch import Stopwatch
from trainer.spec import Gpt, GridSpec, JobSpec, ScheduleSpec
from trainer.trace.kinds import Kind

DEVICE = torch.device("cuda", 0)
MODEL = Gpt(layers=4, width=32, heads=4, context=32)
STEPS = 20


def main() -> int:
    if not torch.cuda.is_available():
        print(f"There is no card that torch {torch.__version__} can use here: nothing was checked.")
        return 2
    failed = [name for name, check in CHECKS.items() if not _passes(name, check)]
    print(f"{len(CHECKS) - len(failed)} of {len(CHECKS)} checks passed" + (f"; not {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


def _passes(name: str, check: Callable[[], str]) -> bool:
    began = time.monotonic()
    try:
        seen = check()
    except Exception as error:
        traceback.print_exc()
        print(f"FAIL {name:9} {type(error).__name__}: {error}", flush=True)
        return False
    print(f"ok   {name:9} {seen} ({time.monotonic() - began:.1f} s)", flush=True)
    return True


def _expect(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


def card() -> str:
    nccl = ".".join(map(str, torch.cuda.nccl.version()))
    return f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, CUDA {torch.version.cuda}, NCCL {nccl}"


def nccl() -> str:
    """In a process of its own: what NCCL starts would be in the way of forks."""
    queued_ms, span_ms, device_ms = apart(nccl_times)
    _expect(span_ms > 0.8 * device_ms, f"the span of {span_ms:.2f} ms ends before the device's {device_ms:.2f} ms are over")
    _expect(queued_ms < device_ms / 2, f"the host was to go on at once, and took {queued_ms:.2f} ms")
    return f"queued in {queued_ms:.2f} ms, span {span_ms:.2f} ms, device {device_ms:.2f} ms"


def nccl_times() -> tuple[float, float, float]:
    """Milliseconds: to call an all-reduce behind a long multiplication, its span, and what the device took for both."""
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    rows: list[tuple[object, ...]] = []
    probe = CollectiveProbe(rows.append, {}, lambda: 0)
    probe.install("CUDA")
    numbers, matrix = torch.ones(1 << 24, device=DEVICE), torch.randn(4096, 4096, device=DEVICE)
    dist.all_reduce(numbers)  # makes the communicator
    _multiply(matrix)
    torch.cuda.synchronize()
    probe.settle()
    rows.clear()
    began = time.monotonic_ns()
    _multiply(matrix)
    dist.all_reduce(numbers)
    queued = time.monotonic_ns()
    torch.cuda.synchronize()
    done = time.monotonic_ns()
    probe.settle()
    (row,) = rows
    _expect(row[0] is Kind.ALL_REDUCE and bool((numbers == 1).all()), "one rank's sum is its own numbers, and one span")
    dist.destroy_process_group()
    return (queued - began) / 1e6, (row[2] - row[1]) / 1e6, (done - began) / 1e6  # type: ignore[operator]


def _multiply(matrix: torch.Tensor) -> None:
    for _ in range(20):
        matrix @ matrix


def events() -> str:
    host_ms, measured_ms, device_ms = apart(stopwatch_times)
    _expect(abs(measured_ms - device_ms) < 0.1 * device_ms + 0.1,
            f"{measured_ms:.2f} ms where the device took {device_ms:.2f} ms")
    _expect(host_ms < device_ms / 2, f"the host was to go on at once, and took {host_ms:.2f} ms")
    return f"host {host_ms:.2f} ms, span {measured_ms:.2f} ms, device {device_ms:.2f} ms"


def stopwatch_times() -> tuple[float, float, float]:
    """Milliseconds: to queue multiplications, by the stopwatch, and by a host that waits for them."""
    matrix, stopwatch = torch.randn(4096, 4096, device=DEVICE), Stopwatch(DEVICE)
    _multiply(matrix)
    torch.cuda.synchronize()
    began = time.monotonic_ns()
    _multiply(matrix)
    torch.cuda.synchronize()
    device = time.monotonic_ns() - began
    began = time.monotonic_ns()
    stopwatch.start()
    _multiply(matrix)
    queued = time.monotonic_ns()
    start, end = stopwatch.times(began, queued)
    return (queued - began) / 1e6, (end - start) / 1e6, device / 1e6


def _job(grid: GridSpec, micro_batches: int) -> JobSpec:
    schedule = ScheduleSpec(name="1f1b", micro_batches=micro_batches)
    return JobSpec(model=MODEL, grid=grid, schedule=schedule, batch=16, steps=STEPS, precision="float64", device="cuda")


def _run(spec: JobSpec) -> Ran:
    with TemporaryDirectory(prefix="lockstep-gpu-") as folder:
        return run(spec, Path(folder)).check()


def _worst(ran: Ran) -> float:
    """The largest relative distance of a step's loss from that of one plain process on the CPU."""
    plain = apart(unsplit_losses, ran.spec)
    _expect(len(ran.losses) == len(plain) == STEPS and plain[-1] < plain[0], "every step has a loss, and it falls")
    worst = max(abs(one / other - 1) for one, other in zip(ran.losses, plain, strict=True))
    _expect(worst <= 1e-9, f"a loss is {worst:.1e} away from one plain process's")
    return worst


def training() -> str:
    ran = _run(_job(GridSpec(), 4))
    worst = _worst(ran)
    ran.assert_lanes_are_in_order()
    forwards = [span.end_ns - span.start_ns for span in ran.of(Kind.FORWARD) if span.step]
    _expect(len(forwards) == 4 * (STEPS - 1) and min(forwards) > 0, "every forward is a span that lasts")
    return f"losses within {worst:.1e}, a forward {sorted(forwards)[len(forwards) // 2] / 1e6:.2f} ms"


def sharing() -> str:
    ran = _run(_job(GridSpec(dp=2, pp=2), 4))
    worst = _worst(ran)
    equal = {rank for rank, kind, text in ran.marks if (kind, text) == ("parameters", "equal")}
    _expect(equal == {0, 1, 2, 3}, f"copies are equal on ranks {sorted(equal)} alone")
    reduced = ran.of(Kind.ALL_REDUCE)
    _expect(bool(reduced) and {span.group for span in reduced} >= {"dp"}, "the averaging of gradients is seen")
    return f"four ranks, losses within {worst:.1e}, {len(reduced)} all-reduces seen"


def memory() -> str:
    ran = _run(_job(GridSpec(), 4))
    peak = {kind: max(value for _, value in rows) for (_, kind), rows in ran.memory.items()}
    alive = peak["weights"] + peak["gradients"] + peak["optimizer"]
    _expect(peak["allocated_peak"] >= peak["allocated"] >= alive, f"the allocator gave out less than is alive: {peak}")
    (held,) = predicted(ran.spec)
    for kind in ("weights", "gradients", "optimizer"):
        expected = getattr(held, kind)
        _expect(peak[kind] == expected, f"{kind}: {peak[kind]:.0f} B are alive, {expected} B were predicted")
    ratio = peak["activations"] / held.activations
    _expect(0.5 < ratio < 2, f"activations are {ratio:.2f} of what formulas say")
    return f"allocated {peak['allocated'] / 1e6:.1f} MB at most between actions, {peak['allocated_peak'] / 1e6:.1f} MB ever, " \
           f"weights to the byte, activations {ratio:.2f} of the CPU's formulas"


CHECKS = {"card": card, "nccl": nccl, "events": events, "training": training, "sharing": sharing, "memory": memory}

if __name__ == "__main__":
    sys.exit(main())
