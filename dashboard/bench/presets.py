"""Every preset through the stack, to its end: how long it runs, and how it ended."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from argparse import ArgumentParser
from typing import Any

from dashboard.bench.place import CannotMeasure, own_place, wait_for_worker
from dashboard.conf import ROOT
from trainer.presets import PRESETS

HELP = "how long each preset runs, and its bubble beside theory"

MANAGE = ROOT / "manage.py"
PATIENCE_SECONDS = 300


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--preset", action="append", choices=sorted(PRESETS), metavar="KEY",
                        help="presets: only this one; may be given several times")


def run(options: dict[str, Any]) -> dict[str, Any]:
    """`longest_seconds` is of the slowest preset, from the command that launches it to its sealed end."""
    with own_place() as (home, _, _):
        measured = {}
        for key in options.get("preset") or PRESETS:
            wait_for_worker(home)
            measured[key] = _measured(key)
    seconds = [one["seconds"] for one in measured.values()]
    return {
        "longest_seconds": max(seconds),
        "unfinished": [key for key, one in measured.items() if one["state"] != "finished"],
        "presets": measured,
    }


def _measured(key: str) -> dict[str, Any]:
    began = time.monotonic()
    done = subprocess.run([sys.executable, str(MANAGE), "launch", key, "--wait", "--json"], capture_output=True, text=True,
                          timeout=PATIENCE_SECONDS)
    seconds = time.monotonic() - began
    try:
        result = json.loads(done.stdout)
    except ValueError:
        raise CannotMeasure(f"{key} was not launched: {done.stderr[-500:]}") from None
    kept = {name: result[name] for name in ("state", "reason", "bubble_share", "bubble_share_theory")}
    return {"seconds": round(seconds, 2), **kept}
