"""How long the stack takes to come up, and how long from the press of Launch to the first span on the page.

Cold is right after the rank host was started again, warm with torch loaded; beside them torchrun's own start.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from dashboard.bench.place import (
    CannotMeasure,
    browser,
    launch,
    own_place,
    owner_page,
    restart_rank_host,
    until,
    wait_for_worker,
)

HELP = "from the press of Launch to the first span on the page"

PRESET = "pipeline-1f1b"
WARM_STARTS = 5
TORCHRUN_STARTS = 3
RANKS = 4

# What torchrun starts for comparison: as many ranks, ready once they have exchanged something.
_SCRIPT = """
import time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
if dist.get_rank() == 0:
    print("ready", time.time(), flush=True)
dist.destroy_process_group()
"""


def run(options: dict[str, Any]) -> dict[str, Any]:
    with own_place() as (home, stack, up_seconds), browser() as context:
        page = owner_page(context, home, stack)
        restart_rank_host(home)
        cold = _start(page, stack)
        warm = []
        for _ in range(WARM_STARTS):
            until(page, "window.lockstep.run.has_ended")
            wait_for_worker(home)
            warm.append(_start(page, stack))
    return {
        "cold_seconds": round(cold, 3),
        "warm_seconds": round(median(warm), 3),
        "up_seconds": round(up_seconds, 3),
        "torchrun_seconds": round(median(_torchrun() for _ in range(TORCHRUN_STARTS)), 3),
        "warm_starts_seconds": [round(seconds, 3) for seconds in warm],
        "ranks": RANKS,
    }


def _start(page: Any, stack: Any) -> float:
    pressed_ms = launch(page, stack, PRESET, steps=2)
    until(page, "window.lockstep?.firstSpanAtMs")
    return float(page.evaluate("() => window.lockstep.firstSpanAtMs") - pressed_ms) / 1000


def _torchrun() -> float:
    """Seconds from torchrun's own start to the end of the ranks' first all-reduce."""
    with TemporaryDirectory() as folder:
        script = Path(folder) / "ready.py"
        script.write_text(_SCRIPT)
        began = time.time()
        done = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS}", str(script)],
            capture_output=True, text=True, timeout=120,
        )
    ready = [line for line in done.stdout.splitlines() if line.startswith("ready ")]
    if not ready:
        raise CannotMeasure(f"torchrun did not start its ranks: {done.stderr[-500:]}")
    return float(ready[0].split()[1]) - began
