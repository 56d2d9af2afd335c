"""How long the analysis of a run of ten million spans takes, and how much memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dashboard.bench.place import CannotMeasure
from dashboard.bench.stores import fill
from dashboard.bench.synthetic import Shape
from dashboard.conf import ROOT

HELP = "the analysis of 10 million spans"

SHAPE = Shape(copies=8, stages=8)

# In a process of its own, so that its peak is the analysis's alone.
_ANALYSE = """
import json, resource, sys, time
from pathlib import Path
from trainer.grid import Grid
from trainer.trace.analysis.run import analysed
from trainer.trace.store import StoreReader
copies, stages = int(sys.argv[2]), int(sys.argv[3])
began = time.perf_counter()
found = analysed(StoreReader(Path(sys.argv[1])), copies * stages, Grid((copies, 1, stages, 1, 1)))
seconds = time.perf_counter() - began
cpu_seconds = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({
    "seconds": round(seconds, 2), "spans": found.spans, "peak_mb": round(peak_mb, 1), "steps": found.steps,
    "cpu_seconds": round(cpu_seconds, 2),
}))
"""


def run(options: dict[str, Any]) -> dict[str, Any]:
    with TemporaryDirectory(prefix="lockstep-bench-", ignore_cleanup_errors=True) as folder:
        fill(Path(folder), SHAPE, options["spans"])
        done = subprocess.run(
            [sys.executable, "-c", _ANALYSE, folder, str(SHAPE.copies), str(SHAPE.stages)],
            cwd=ROOT, capture_output=True, text=True,
        )
    if done.returncode:
        raise CannotMeasure(f"The analysis failed: {done.stderr[-500:]}")
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures
