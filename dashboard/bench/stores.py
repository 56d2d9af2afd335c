"""Stores of runs that never were, and a server that shows them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dashboard.bench import synthetic
from dashboard.bench.place import CannotMeasure
from dashboard.bench.synthetic import Shape
from dashboard.conf import ROOT
from dashboard.stack.ports import listen
from trainer.folder import run_folder, store_folder
from trainer.grid import Grid
from trainer.lifeline import tied_command
from trainer.spec import GridSpec
from trainer.trace.step_figures import StepFigures
from trainer.trace.store import StoreWriter

# In a process of its own, since this one has the settings of another home.
_MAKE_RUNS = """
import django, json, sys
django.setup()
from django.contrib.auth.models import User
from django.core.management import call_command
call_command("migrate", verbosity=0)
from dashboard.runs import links
from dashboard.runs.models import Run
from trainer.presets import PRESETS
owner = User.objects.create_superuser("bench", password=None)
spec = PRESETS["pipeline-1f1b"].spec.model_dump(mode="json")
spec["grid"] |= {"dp": int(sys.argv[2]), "pp": int(sys.argv[3])}
spec["model"] |= {"layers": int(sys.argv[3])}  # a stage without one is no job, and Explain fails at it
made = []
for _ in range(int(sys.argv[1])):
    # Its state says that it is over: nobody supervises it here, and the reaper would call it lost.
    run = Run.objects.create(owner=owner, name="bench", spec_json=spec, device="cpu", state="finished")
    made.append([run.pk, links.share(run, owner)[1]])
print(json.dumps(made))
"""


@dataclass(frozen=True)
class BenchRun:
    id: str
    token: str  # of a link, by which anyone may read it
    home: Path

    @property
    def store(self) -> Path:
        return store_folder(run_folder(self.home, self.id))


def make_runs(home: Path, count: int, shape: Shape) -> list[BenchRun]:
    """Runs of so many ranks in a database of their own."""
    command = [sys.executable, "-c", _MAKE_RUNS, str(count), str(shape.copies), str(shape.stages)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(home), capture_output=True, text=True
    )
    if done.returncode:
        raise CannotMeasure(f"No database could be made: {done.stderr[-500:]}")
    return [BenchRun(run_id, token, home) for run_id, token in json.loads(done.stdout)]


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("REDIS_URL", "DATABASE_URL")}
    return {**kept, "LOCKSTEP_HOME": str(home), "DJANGO_SETTINGS_MODULE": "dashboard.settings", **more}


def fill(folder: Path, shape: Shape, spans: int, has_figures: bool = False) -> int:
    """Write a sealed store of at least so many spans, in whole steps; how many there are. `has_figures`: the steps' too."""
    writer = StoreWriter(folder)
    figures = StepFigures(shape.ranks, grid=Grid.of(GridSpec(dp=shape.copies, pp=shape.stages)))
    count = -(-spans // shape.spans_a_step)
    for step, frames in enumerate(synthetic.steps(shape, count), 1):
        for frame in frames:
            writer.add(frame, f"{step}-{frame.rank}")
            if has_figures:
                figures.add(frame)
        if has_figures:
            writer.add_steps(figures.ready())
        if writer.is_full:
            writer.seal()
    if has_figures:
        writer.add_steps(figures.ready(all_ended=True))
    writer.seal(complete=True)
    return writer.spans


@contextmanager
def server(home: Path) -> Iterator[int]:
    """The web server of this home folder, without Redis; its port."""
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    command = tied_command([sys.executable, "-m", "dashboard.stack.serve", "--fd", str(listener.fileno())])
    web = subprocess.Popen(command, cwd=ROOT, env=environment(home), pass_fds=[listener.fileno()], stdout=sys.stderr.fileno())
    listener.close()
    try:
        yield port  # whoever connects before it is up waits in the socket's queue
    finally:
        web.terminate()
        web.wait(20)
