"""Home folders for tests: the environment of a process that lives in one, and a database as `migrate` makes it."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_DATABASE = "lockstep.sqlite3"
# The runs' state says that they are over: nobody supervises them here, and the reaper would call them lost.
_MAKE = """
import django, json, sys
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from dashboard.runs.models import Run
for _ in range(int(sys.argv[1])):
    print(Run.objects.create(name="test", spec_json=json.loads(sys.argv[2]), device="cpu", state="finished").id)
"""


def clean_environment(home: Path, **more: str) -> dict[str, str]:
    """Of a process that lives in `home` and shares nothing with other stacks."""
    kept = {name: value for name, value in os.environ.items() if name not in ("REDIS_URL", "DATABASE_URL")}
    return kept | {"LOCKSTEP_HOME": str(home), "DJANGO_SETTINGS_MODULE": "dashboard.settings", **more}


def give_database(home: Path, runs: int = 0, spec_json: str = "{}") -> list[str]:
    """Put a database into `home`; the ids of so many runs in it. Made once, and copied from then on: it takes seconds."""
    template, made = _template(runs, spec_json)
    home.mkdir(parents=True, exist_ok=True)
    shutil.copy(template, home / _DATABASE)
    return made


@cache
def _template(runs: int, spec_json: str) -> tuple[Path, list[str]]:
    folder = Path(tempfile.mkdtemp(prefix="lockstep-database-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    done = subprocess.run([sys.executable, "-c", _MAKE, str(runs), spec_json], cwd=ROOT, env=clean_environment(folder),
                          check=True, capture_output=True, text=True)
    return folder / _DATABASE, done.stdout.split()
