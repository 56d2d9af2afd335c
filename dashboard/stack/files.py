"""What a running embedded stack leaves in the home folder, so that other commands find it."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

_LOCK, _STACK = "stack.lock", "stack.json"


class AlreadyUp(Exception):
    """Another stack holds this home folder."""


@dataclass(frozen=True)
class Stack:
    pid: int  # of `manage.py up`
    url: str  # where the pages are, without a slash at the end
    started_unix: float


def write_private(path: Path, text: str) -> None:
    """Whole or not at all, and for its owner's eyes from the first byte."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    os.replace(fresh, path)


def hold(home: Path) -> IO[str]:
    """The right to run a stack in `home`, kept while the file that comes back is open. Raises AlreadyUp."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = open(home / _LOCK, "a+")  # noqa: SIM115  (held as long as the process lives)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        stack = running(home)
        where = f" at {stack.url} (process {stack.pid})" if stack else ", which is just starting"
        raise AlreadyUp(f"A stack runs already in {home}{where}.") from None
    return file


def publish(home: Path, stack: Stack) -> None:
    write_private(home / _STACK, json.dumps(asdict(stack)))


def withdraw(home: Path) -> None:
    (home / _STACK).unlink(missing_ok=True)


def running(home: Path) -> Stack | None:
    """The stack that runs in `home`. One that was killed left its file, but the kernel took its lock."""
    try:
        with open(home / _LOCK) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None
            except BlockingIOError:
                return Stack(**json.loads((home / _STACK).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
