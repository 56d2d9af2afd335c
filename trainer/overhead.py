"""What recording costs the job that is recorded: `python -m trainer.overhead REDIS_URL FOLDER` prints figures as JSON.

One loop, whose step of about a millisecond is twenty layers of a small network, each a span. What is compared is CPU time
of the loop's thread: on a busy machine, or a virtual one whose host takes time away, that stays what it is, where a
clock on the wall does not. But even a processor's speed changes by a third while neighbours come and go. So a step is
compared only with one right beside it: bare and recorded ones in turn, thousands of times, in either order. Neighbours
also empty its caches, and what every other process of the machine costs is not to be told here: so the figure is the
median of the quickest quarter of pairs, by the sum of both their times, as a share of the bare step.

Ours has a second part: the loop waits for Python's global lock while the thread behind it makes frames of what was recorded
and sends them, every 100 ms. That is the time in which the loop's thread did not run, less what it is without spans, in turn; the
real-time class, where it may be had, keeps everybody else out of it. `ours_percent` is both parts. The thread's own
CPU time, on another core if there is one, is given beside them. `clocks_percent` is what reading the clock twice a span
takes from Python, and `added_loop_percent` the loop's part where every span is like none before, so that tracepoints are
of no use. torch.profiler and viztracer are given for what they take in the loop alone: not to start, stop, convert and
save, for which they take seconds.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from time import monotonic_ns
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.profiler import ProfilerActivity

from trainer.trace import packer
from trainer.trace.frame import NONE
from trainer.trace.kinds import Kind
from trainer.trace.row import Recorder
from trainer.trace.sinks import RedisSink
from trainer.trace.writer import Writer

SPANS_A_STEP = 20
STEP_SECONDS = 0.001
WIDTH = 64
PAIRS = 6000
STRETCHES, STRETCH_STEPS = 40, 250  # a quarter of a second: two flushes and more
PROFILED_STEPS = 20  # torch.profiler takes milliseconds to start: it is compared by so many steps at once
PROFILED_PAIRS = 150

Step = Callable[[], None]
FORWARD = Kind.FORWARD  # a member of an Enum is slow to look up


class Loop:
    """Twenty layers a step, of so many rows that it takes a millisecond here when nothing disturbs it."""

    def __init__(self) -> None:
        layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(SPANS_A_STEP)]
        self._layers = list(enumerate(layers))
        rows = 8
        while True:
            self._inputs = torch.randn(rows, WIDTH)
            seconds = min(cpu_ns(self.bare) for _ in range(200)) / 1e9  # as long as others leave it alone
            if seconds > 0.9 * STEP_SECONDS:
                return
            rows = round(rows * min(2.0, max(1.05, STEP_SECONDS / seconds)))

    def bare(self) -> None:
        activations = self._inputs
        for _, layer in self._layers:
            activations = layer(activations)

    def timed(self) -> None:
        """What no recorder of spans can do without: when each layer began and ended."""
        activations = self._inputs
        for _, layer in self._layers:
            monotonic_ns()
            activations = layer(activations)
            monotonic_ns()

    def recorded(self, recorder: Recorder) -> Step:
        """The step that records every layer, by tracepoints, as the probe of optimizers does."""
        layers = [(recorder.tracepoint(FORWARD, f"F{number}", micro_batch=0, stage=0), layer) for number, layer in self._layers]

        def step() -> None:
            activations = self._inputs
            for tracepoint, layer in layers:
                tracepoint.start()
                activations = layer(activations)
                tracepoint.end(7)

        return step

    def added(self, recorder: Recorder) -> Step:
        """The same by `add`, for spans that are never alike."""
        add = recorder.add

        def step() -> None:
            activations = self._inputs
            for number, layer in self._layers:
                start_ns = monotonic_ns()
                activations = layer(activations)
                add(FORWARD, start_ns, monotonic_ns(), 7, 0, 0, NONE, NONE, number, "F", "")

        return step


def cpu_ns(step: Step) -> int:
    """CPU time that this thread takes for it."""
    before = time.thread_time_ns()
    step()
    return time.thread_time_ns() - before


def compared(bare: Step, recorded: Callable[[], int], pairs: int) -> list[float]:
    """By how much more CPU time `recorded` says that it took than `bare` beside it, as a share, in the order of size: of the
    quickest quarter of pairs."""
    found = []
    for pair in range(pairs):
        if pair % 2:
            after, before = recorded(), cpu_ns(bare)
        else:
            before, after = cpu_ns(bare), recorded()
        found.append((before, after))
    undisturbed = sorted(found, key=sum)[: max(1, pairs // 4)]
    return sorted(after / before - 1 for before, after in undisturbed)


def in_loop(loop: Loop, step: Step) -> list[float]:
    return compared(loop.bare, lambda: cpu_ns(step), PAIRS)


class Stretch(NamedTuple):
    """Shares of the loop's CPU time: what its thread waited, and what the CPU time of the thread behind it was."""

    waited: float
    behind: float


def stretch(step: Step, behind: Writer) -> Stretch:
    clock = _clock_of(behind)
    behind_ns, wall_ns, own_ns = time.clock_gettime_ns(clock), monotonic_ns(), time.thread_time_ns()
    for _ in range(STRETCH_STEPS):
        step()
    wall_ns, own_ns = monotonic_ns() - wall_ns, time.thread_time_ns() - own_ns
    return Stretch(wall_ns / own_ns - 1, (time.clock_gettime_ns(clock) - behind_ns) / own_ns)


def stretches(bare: Step, recorded: Step, behind: Writer) -> tuple[Stretch, Stretch]:
    """Without and with spans, in turn; of each the lower quartile, for what a host takes away only adds."""
    pairs = [(stretch(bare, behind), stretch(recorded, behind)) for _ in range(STRETCHES)]
    alone, with_it = (Stretch(*(quantiles(shares, n=4)[0] for shares in zip(*found, strict=True)))
                      for found in zip(*pairs, strict=True))
    return alone, with_it


def _clock_of(writer: Writer) -> int:
    """Of the CPU time of the writer's thread."""
    ident = next(thread.ident for thread in threading.enumerate() if thread.name == writer.thread_name)
    assert ident is not None
    return time.pthread_getcpuclockid(ident)


def torch_profiler_in_loop(loop: Loop) -> list[float]:
    def steps() -> None:
        for _ in range(PROFILED_STEPS):
            loop.bare()

    def profiled() -> int:
        with torch.profiler.profile(activities=[ProfilerActivity.CPU]):
            return cpu_ns(steps)

    return compared(steps, profiled, PROFILED_PAIRS)


def viztracer_in_loop(loop: Loop, folder: Path) -> list[float]:
    from viztracer import VizTracer

    tracer: Any = VizTracer(verbose=0, output_file=str(folder / "viztracer.json"))

    def traced() -> int:
        tracer.start()
        took = cpu_ns(loop.bare)
        tracer.stop()
        tracer.clear()
        return took

    return compared(loop.bare, traced, PAIRS // 4)


def measure(redis_url: str, folder: Path) -> dict[str, Any]:
    scheduling, loop = _ask_for_realtime(), Loop()
    gc.freeze()  # as a rank does before its first step
    others = {"torch_profiler": torch_profiler_in_loop(loop), "viztracer": viztracer_in_loop(loop, folder)}
    here = Writer(0, RedisSink(redis_url, "overhead"), folder / "spill-0", zero_ns=1)
    recorded = loop.recorded(here)
    clocks, ours, added = (in_loop(loop, step) for step in (loop.timed, recorded, loop.added(here)))
    alone, with_it = stretches(loop.bare, recorded, here)
    here.close()
    away = Writer(1, RedisSink("redis://127.0.0.1:1/0", "overhead"), folder / "spill-1", zero_ns=1)
    alone_away, with_away = stretches(loop.bare, loop.recorded(away), away)
    away.close(0.1)
    low, own, high = quantiles(ours, n=4)
    waited = {"ours": with_it.waited - alone.waited, "ours_away": with_away.waited - alone_away.waited}
    return {
        **{f"{name}_percent": _percent(own + max(0.0, share)) for name, share in waited.items()},
        **{f"{name}_percent": _percent(median(shares)) for name, shares in others.items()},
        "clocks_percent": _percent(median(clocks)),
        "added_loop_percent": _percent(median(added)),
        "ours_loop_percent": _percent(own),
        "ours_loop_quartiles_percent": [_percent(low), _percent(high)],
        "ours_waiting_percent": _percent(waited["ours"]),
        "ours_thread_percent": _percent(with_it.behind),
        "alone_waiting_percent": _percent(alone.waited),
        "step_cpu_ms": round(median(cpu_ns(loop.bare) for _ in range(200)) / 1e6, 3),
        "spans_a_step": SPANS_A_STEP,
        "scheduling": scheduling,
        "is_compiled": packer.IS_COMPILED,
    }


def _ask_for_realtime() -> str:
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        return "default"
    return "real-time"


def _percent(share: float) -> float:
    return round(100 * share, 2)


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # of the Redis that is away
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]))))
