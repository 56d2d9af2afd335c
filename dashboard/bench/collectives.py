"""Each of our AllReduces against the backend's own, gloo's, on four ranks of this machine, in one run."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from dashboard.bench.place import CannotMeasure

HELP = "our AllReduces against gloo's own, by size"

PATIENCE_SECONDS = 300
BACKEND = "backend"


def run(options: dict[str, Any]) -> dict[str, Any]:
    """`ratio_to_gloo`: size → algorithm → how many times gloo's duration. `gloo_ms` is what that is."""
    # A process of its own: this one never loads torch.
    done = subprocess.run([sys.executable, "-m", "trainer.collectives.bench"], capture_output=True, text=True,
                          timeout=PATIENCE_SECONDS)
    if done.returncode:
        raise CannotMeasure(f"The ranks that were to be measured did not end well: {done.stderr[-500:]}")
    seconds: dict[str, dict[str, float]] = json.loads(done.stdout)
    return {
        "ratio_to_gloo": {
            size: {name: round(took / of[BACKEND], 3) for name, took in of.items() if name != BACKEND}
            for size, of in seconds.items()
        },
        "gloo_ms": {size: round(of[BACKEND] * 1000, 3) for size, of in seconds.items()},
        "ranks": 4,
    }
