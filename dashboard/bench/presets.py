"""Every preset through the stack, to its end: how long it runs, and how it ended."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from argparse import ArgumentParser
from typing import Any

from dashboard.bench.machine import machine_time, stolen_share
from dashboard.bench.place import own_place, wait_for_worker
from dashboard.conf import ROOT
from trainer.presets import PRESETS

HELP = "how long each preset runs, its bubble and its step time beside theory"

MANAGE = ROOT / "manage.py"
PATIENCE_SECONDS = 300
_KEPT = ("state", "reason", "bubble_share", "bubble_share_theory", "step_seconds", "step_seconds_theory", "realtime")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--preset", action="append", choices=sorted(PRESETS), metavar="KEY",
                        help="presets: only this one; may be given several times")
    parser.add_argument("--set", action="append", default=[], metavar="A.B=C",
                        help="presets: change a field of each, as `launch` does; may be given several times")


def run(options: dict[str, Any]) -> dict[str, Any]:
    """`longest_seconds` is of the slowest preset, from the command that launches it to its sealed end. `step_off` is by how much
    of its theory the median step takes longer; a machine whose host takes time from it, `stolen`, makes it longer too."""
    with own_place() as (home, _, _):
        measured = {}
        for key in options.get("preset") or PRESETS:
            wait_for_worker(home)
            measured[key] = _measured(key, options.get("set") or [])
    seconds = [one["seconds"] for one in measured.values()]
    off = [abs(one["step_off"]) for one in measured.values() if one["step_off"] is not None]
    return {
        "longest_seconds": max(seconds),
        "largest_step_off": max(off, default=None),
        "unfinished": [key for key, one in measured.items() if one["state"] != "finished"],
        "presets": measured,
    }


def _measured(key: str, changes: list[str]) -> dict[str, Any]:
    began, before = time.monotonic(), machine_time()
    sets = [word for change in changes for word in ("--set", change)]
    done = subprocess.run([sys.executable, str(MANAGE), "launch", key, *sets, "--wait", "--json"], capture_output=True, text=True,
                          timeout=PATIENCE_SECONDS)
    seconds, after = time.monotonic() - began, machine_time()
    result = json.loads(done.stdout or "{}") or {"state": "refused", "reason": done.stderr[-500:]}
    kept = {name: result.get(name) for name in _KEPT}
    took, planned = kept["step_seconds"], kept["step_seconds_theory"]
    return {"seconds": round(seconds, 2), **kept, "step_off": took / planned - 1 if took and planned else None,
            "stolen": round(stolen_share(before, after), 4)}
