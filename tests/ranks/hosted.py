"""Runs jobs under a real host of ranks, without a worker or Redis: what the host says, and what the ranks recorded."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.ranks.launch import Ran, read
from trainer.ends import Exit
from trainer.folder import log_file
from trainer.spec import JobSpec
from workers.rank_host import Link

DEADLINE_SECONDS = 90


@dataclass
class Hosted:
    """`heard` are the host's messages with the moment of each; `exits` are the last life's."""

    heard: list[tuple[float, dict[str, Any]]]
    exits: list[Exit]
    ran: Ran
    frames: list[list[int]]  # each rank's numbers of frames, as they were written

    def moment(self, kind: str, nth: int = 0) -> float:
        return [at for at, message in self.heard if message["type"] == kind][nth]


@contextmanager
def rank_host() -> Iterator[str]:
    """The name of a host that is ready."""
    name = f"lockstep-test-{os.getpid()}-{time.monotonic_ns()}"
    process = subprocess.Popen([sys.executable, "-m", "trainer.host", "--socket", name, "--parent", str(os.getpid())])
    try:
        with Link(name, DEADLINE_SECONDS) as link:
            link.ask_status()
            assert link.hear(DEADLINE_SECONDS)
        yield name
    finally:
        process.terminate()
        process.wait()


def run_hosted(name: str, spec: JobSpec, folder: Path) -> Hosted:
    heard: list[tuple[float, dict[str, Any]]] = []
    end = time.monotonic() + DEADLINE_SECONDS
    with Link(name, DEADLINE_SECONDS) as link:
        link.start("test", spec.to_json(), folder, "", 50.0)
        while not any(message["type"] == "done" for _, message in heard):
            assert time.monotonic() < end, heard
            heard += [(time.monotonic(), message) for message in link.hear(1.0)]
    lives = [at for at, (_, message) in enumerate(heard) if message["type"] == "started"]
    fields = [message for _, message in heard[lives[-1]:] if message["type"] == "exit"]
    exits = [Exit(**{key: value for key, value in message.items() if key != "type"}) for message in fields]
    codes = [end.code or 0 for end in sorted(exits, key=lambda end: end.rank)]
    logs = [log_file(folder, rank).read_text() for rank in range(spec.ranks)]
    ran = Ran(spec, codes, logs, [], stolen=0.0)
    frames = [read(ran, folder / "frames" / f"rank-{rank}.frames", again=True) for rank in range(spec.ranks)]
    return Hosted(heard, exits, ran, frames)
