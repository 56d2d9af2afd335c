"""A stack for as long as one command needs it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dashboard.conf import ROOT
from dashboard.stack.files import Stack, running
from dashboard.stack.health import redis_answers, web_answers
from trainer.lifeline import tied_command

START_PATIENCE_SECONDS = 60.0
STOP_PATIENCE_SECONDS = 25.0


class NoStack(Exception):
    """The stack did not come up; what it printed says why."""


def answering(home: Path, redis_url: str) -> Stack | None:
    """The stack of this home folder, if it is there and answers."""
    stack = running(home)
    return stack if stack and redis_url and redis_answers(redis_url) and web_answers(stack.url) else None


@contextmanager
def own_stack(home: Path) -> Iterator[Stack]:
    """`manage.py up` on a free port, its lines on standard error. It dies with this process and ends with this block."""
    command = tied_command([sys.executable, str(ROOT / "manage.py"), "up", "--port", "0"])
    up = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno(), start_new_session=True)
    try:
        yield _await(home, up)
    finally:
        up.send_signal(signal.SIGTERM)
        try:
            up.wait(STOP_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            up.kill()


def _await(home: Path, up: subprocess.Popen[bytes]) -> Stack:
    give_up = time.monotonic() + START_PATIENCE_SECONDS
    while up.poll() is None and time.monotonic() < give_up:
        stack = running(home)
        if stack and stack.pid == up.pid and web_answers(stack.url):
            return stack
        time.sleep(0.1)
    raise NoStack("No stack answers here, and none could be started.")
