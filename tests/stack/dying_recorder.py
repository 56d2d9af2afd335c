"""A recorder that is killed by SIGKILL at a point of its sealing: `python -m tests.stack.dying_recorder POINT`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django
import redis
from django.core.management import call_command

from trainer.trace import journal, manifest

POINTS = (
    "half of the segment is written", "the segment is written", "the segments' journal is written",
    "half of the manifest is written", "the manifest is written", "entries are acknowledged",
)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arrange(point: str) -> None:
    number = POINTS.index(point)
    whole, append, trim = manifest.write_whole, journal.append, redis.Redis.xtrim

    def write_whole(path: Path, data: bytes) -> None:
        half, done = (0, 1) if path.suffix == ".parquet" else (3, 4)
        if number == half:
            path.with_name(path.name + ".part").write_bytes(data[: len(data) // 2])
            die()
        whole(path, data)
        if number == done:
            die()

    def append_rows(path: Path, *given: Any) -> int:
        end = append(path, *given)
        if number == 2 and path.stem == manifest.SEGMENTS:
            die()
        return end

    def xtrim(*given: Any, **named: Any) -> Any:
        if number == 5:
            die()
        return trim(*given, **named)

    patches: list[tuple[Any, str, Callable[..., Any]]] = [
        (manifest, "write_whole", write_whole), (journal, "append", append_rows), (redis.Redis, "xtrim", xtrim),
    ]
    for place, name, function in patches:
        setattr(place, name, function)


if __name__ == "__main__":
    arrange(sys.argv[1])
    django.setup()
    call_command("record")
