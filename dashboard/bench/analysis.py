"""How long the analysis of a run of ten million spans takes, and how much memory; HolisticTraceAnalysis on some of it beside.

Its overlap and idle analysis takes time and memory as the number of spans, and holds all of them: so it gets a run of fewer
spans of the same kind, in one process as we have it, and so do we once more. `hta_seconds` and `same_seconds` are of the
same spans, each from what it reads, files or segments, to its figures; imports are not counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dashboard.bench import hta
from dashboard.bench.place import CannotMeasure
from dashboard.bench.stores import fill
from dashboard.bench.synthetic import Shape
from dashboard.conf import ROOT
from dashboard.runs.exports.hta import rank_files
from trainer.trace.store import StoreReader

HELP = "the analysis of 10 million spans, and HolisticTraceAnalysis on some of them beside it"

SHAPE = Shape(copies=8, stages=8)
HTA_SPANS = 200_000

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
        whole, part = Path(folder, "whole"), Path(folder, "part")
        fill(whole, SHAPE, options["spans"])
        fill(part, SHAPE, min(HTA_SPANS, options["spans"]))
        return _analyse(whole) | _beside(part, Path(folder, "files"))


def _analyse(store: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", _ANALYSE, str(store), str(SHAPE.copies), str(SHAPE.stages)],
        cwd=ROOT, capture_output=True, text=True,
    )
    if done.returncode:
        raise CannotMeasure(f"The analysis failed: {done.stderr[-500:]}")
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def _beside(store: Path, files: Path) -> dict[str, Any]:
    """HolisticTraceAnalysis on a store's spans; nulls and the reason where it is not here."""
    reader = StoreReader(store)
    files.mkdir()
    rank_files((reader.segment_frames(segment) for segment in reader.segments), SHAPE.ranks, files)
    try:
        theirs = hta.read(files)
    except hta.NoReader as missing:
        return {"hta_seconds": None, "hta_missing": str(missing)}
    ours = _analyse(store)
    seconds = theirs["parse_seconds"] + theirs["analysis_seconds"]
    return {
        "hta_seconds": round(seconds, 2), "hta_parse_seconds": round(theirs["parse_seconds"], 2), "hta_spans": ours["spans"],
        "same_seconds": ours["seconds"], "times_hta": round(seconds / ours["seconds"], 1),
    }
