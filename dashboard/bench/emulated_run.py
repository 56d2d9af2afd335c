"""A run that nobody trains, live in a real stack: a process beside it is its supervisor and all its ranks.

    with emulated_run(home, rate, seconds) as run:
        …                    # pages open run.id
        run.begin()          # spans come from now on
        …                    # pages see the run to its end
        run.wait()           # what the ranks say of themselves
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import redis

from dashboard.bench import emulated_ranks
from dashboard.bench.emulated_ranks import SHAPE
from dashboard.bench.place import CannotMeasure
from dashboard.bench.stores import environment
from dashboard.conf import ROOT
from trainer.lifeline import tied_command
from trainer.trace.stream import EVENT, LIVE_RUNS, RunBeat, beat_key, frames_key

BEAT_SECONDS = 1.0
WORKER = "emulated"


class EmulatedRun:
    def __init__(self, process: subprocess.Popen[str]):
        self._process = process
        self.id: str = self._line()["run"]

    def begin(self) -> None:
        assert self._process.stdin
        self._process.stdin.write("begin\n")
        self._process.stdin.flush()

    def wait(self) -> dict[str, float]:
        """`behind_seconds`: by which the sender was late at most; `cores`: that it kept busy."""
        return self._line()

    def _line(self) -> Any:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise CannotMeasure("The process of the emulated ranks ended; what it said is above.")
        return json.loads(line)


@contextmanager
def emulated_run(home: Path, rate: float, seconds: float) -> Iterator[EmulatedRun]:
    """A run of `emulated_ranks.SHAPE` in the stack of `home`, for its first account; it begins when it is told to."""
    command = tied_command([sys.executable, "-m", "dashboard.bench.emulated_run", str(rate), str(seconds)])
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield EmulatedRun(process)
    finally:
        process.terminate()
        process.wait(20)


def _supervise(rate: float, seconds: float) -> None:
    import django

    django.setup()
    from django.conf import settings
    from django.contrib.auth import get_user_model

    from dashboard.runs import services
    from dashboard.runs.models import Run, State
    from trainer.presets import PRESETS

    steps = emulated_ranks.steps_in(SHAPE, rate, seconds)
    made = list(emulated_ranks.flushes(SHAPE, rate, steps))  # before it begins: only sending costs while one measures
    spec = PRESETS["pipeline-1f1b"].spec.model_dump(mode="json") | {"steps": steps}
    spec["grid"] |= {"dp": SHAPE.copies, "pp": SHAPE.stages}
    spec["model"] |= {"layers": SHAPE.stages}  # a stage without one is no job, and Explain fails at it
    run = Run.objects.create(owner=get_user_model().objects.first(), name="emulated", spec_json=spec, device=WORKER)
    client = redis.Redis.from_url(settings.CONF.redis_url)
    services.move(run.id, State.STARTING, worker=WORKER)
    threading.Thread(target=_beat, args=(client, run.id), daemon=True).start()
    client.sadd(LIVE_RUNS, run.id)
    print(json.dumps({"run": run.id}), flush=True)
    sys.stdin.readline()
    services.move(run.id, State.RUNNING)
    began, busy = time.monotonic(), time.process_time()
    behind_seconds = emulated_ranks.send(client, run.id, made)
    cores = (time.process_time() - busy) / (time.monotonic() - began)
    client.xadd(frames_key(run.id), {EVENT: json.dumps({"type": "end"})})
    services.move(run.id, State.FINISHED, steps_done=steps)
    print(json.dumps({"behind_seconds": behind_seconds, "cores": cores}), flush=True)


def _beat(client: Any, run_id: str) -> None:
    """The reaper calls a run lost whose supervisor fell silent."""
    count = 0
    while True:
        count += 1
        beat = RunBeat(WORKER, socket.gethostname(), os.getpid(), os.getpid(), count)
        client.set(beat_key(run_id), json.dumps(asdict(beat)), ex=60)
        time.sleep(BEAT_SECONDS)


if __name__ == "__main__":
    _supervise(float(sys.argv[1]), float(sys.argv[2]))
