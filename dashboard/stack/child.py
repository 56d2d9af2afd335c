"""One process of the stack: started, watched, started again when it ends, stopped in order."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dashboard.conf import ROOT
from trainer.lifeline import tied_command

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 10.0
_LIVED_WELL_SECONDS = 30.0
_LARGEST_LOG_BYTES = 20_000_000


@dataclass(frozen=True)
class Part:
    """What to start, under which name."""

    name: str
    command: list[str]
    stop_seconds: float  # between SIGTERM and SIGKILL
    kept_fds: Sequence[int] = ()


@dataclass
class Child:
    part: Part
    log: Path
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    start_again_at: float | None = None
    pause_seconds: float = field(default=_FIRST_PAUSE_SECONDS)

    @property
    def pid(self) -> int:
        return self.process.pid if self.process else 0

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """From the main thread: the process dies with the thread that starts it."""
        self.log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.log.exists() and self.log.stat().st_size > _LARGEST_LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.old"))
        with open(os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
            self.process = subprocess.Popen(
                tied_command(self.part.command), cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, pass_fds=self.part.kept_fds,
            )
        self.started_at, self.start_again_at = time.monotonic(), None

    def care(self) -> str | None:
        """Start it again if it ended, after a pause; what happened, in words, when something did."""
        if self.process is None or self.is_alive:
            return None
        now = time.monotonic()
        if self.start_again_at is None:
            self.pause_seconds = _FIRST_PAUSE_SECONDS if now - self.started_at > _LIVED_WELL_SECONDS else self.pause_seconds
            self.start_again_at = now + self.pause_seconds
            words = f"{ended_how(self.process.returncode)}; it starts again in {self.pause_seconds:g} s. Its log: {self.log}"
            self.pause_seconds = min(self.pause_seconds * 2, _LONGEST_PAUSE_SECONDS)
            return words
        if now >= self.start_again_at:
            self.start()
        return None

    def kill(self) -> None:
        """At once; `care` starts it again."""
        if self.process is not None and self.is_alive:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        """For good: ask, and kill what does not go in time."""
        if self.process is None:
            return
        if self.is_alive:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(self.part.stop_seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None


def ended_how(status: int) -> str:
    if status >= 0:
        return f"ended with exit code {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"
