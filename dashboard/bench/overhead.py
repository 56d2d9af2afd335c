"""What recording costs a job, beside torch.profiler and viztracer: `trainer.overhead`, with a Valkey of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import redis

from dashboard.bench.place import CannotMeasure, wait_for
from dashboard.stack.valkey import NoServer, prepare

HELP = "how much longer a step takes that is recorded, here and by torch.profiler and viztracer"

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 900


def run(options: dict[str, Any]) -> dict[str, Any]:
    if find_spec("viztracer") is None:
        raise CannotMeasure("viztracer is missing; `make setup` installs it with the rest of the development tools.")
    with TemporaryDirectory(prefix="lockstep-bench-") as folder:
        try:
            valkey = prepare(Path(folder))
        except NoServer as trouble:
            raise CannotMeasure(str(trouble)) from None
        server = subprocess.Popen(valkey.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: _answers(valkey.url), "Valkey")
            return _measured(valkey.url, folder)
        finally:
            server.kill()
            server.wait()


def _answers(url: str) -> bool:
    try:
        with redis.Redis.from_url(url) as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False


def _measured(url: str, folder: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-m", "trainer.overhead", url, folder], cwd=ROOT,
                          capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    if done.returncode:
        raise CannotMeasure(f"the measured loop failed: {done.stderr[-500:]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures
