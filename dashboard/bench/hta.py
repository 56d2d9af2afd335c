"""HolisticTraceAnalysis reading what we export for it: how long that takes, and what it finds.

It lies apart from our own packages (`make readers`), since it names JupyterLab among what it needs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from dashboard.conf import ROOT

FOLDER = ROOT / "test-artifacts" / "hta"
MISSING = "HolisticTraceAnalysis is not here: `make readers` fetches it"

# Its pool of processes, its log and its charts are its own affair: one process, no word, no chart.
_READ = """
import json, logging, sys, time
logging.disable(logging.CRITICAL)
from hta.common.trace import Trace
from hta.trace_analysis import TraceAnalysis
began = time.perf_counter()
Trace.load_traces.__defaults__ = (False, False, False)
analysis = TraceAnalysis(trace_dir=sys.argv[1])
parsed = time.perf_counter()
overlap = analysis.get_comm_comp_overlap(visualize=False)
idle = analysis.get_temporal_breakdown(visualize=False)
ended = time.perf_counter()
names = analysis.t.symbol_table.get_sym_table()
spans = [
    [rank, names[name], int(count), float(total)] for rank, trace in analysis.t.get_all_traces().items()
    for name, count, total in trace.groupby("name")["dur"].agg(["count", "sum"]).itertuples()
]
print(json.dumps({
    "parse_seconds": parsed - began, "analysis_seconds": ended - parsed, "spans": spans,
    "overlap": overlap.to_dict("records"), "idle": idle.to_dict("records"),
}))
"""


class NoReader(Exception):
    """It is not here, or it does not read what it is given; the message says which."""


def is_here() -> bool:
    return (FOLDER / "whole").exists()  # written last


def read(folder: Path) -> dict[str, Any]:
    """What it makes of the files in `folder`; seconds without its imports.

    `spans`: (rank, name, how many, their microseconds); `overlap` and `idle`: a row a rank, as its tables have them.
    """
    if not is_here():
        raise NoReader(MISSING)
    environment = {**os.environ, "PYTHONPATH": str(FOLDER), "HTA_DISABLE_NS_ROUNDING": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _READ, str(folder)], env=environment, capture_output=True, text=True,
    )
    if done.returncode:
        raise NoReader(f"HolisticTraceAnalysis failed: {done.stderr[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
