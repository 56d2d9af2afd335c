"""Where frames go: a run's Redis stream, or a file of whole frames one after another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from trainer.trace.frame import HEADER, MAGIC
from trainer.trace.stream import FRAME, frames_key


class SinkAway(Exception):
    """The frame was not taken, or nobody knows whether it was: send it again later."""


class Sink(Protocol):
    def send(self, frame: bytes) -> None:
        """Hand over one frame; SinkAway when that could not be done."""


class RedisSink:
    """The run's stream. No retries of its own: the writer keeps order by deciding what is sent next.

    The command is put together here, since `Redis.xadd` takes 0.2 ms of Python around a frame, and longer with cold caches.
    """

    def __init__(self, url: str, run_id: str, timeout_seconds: float = 1.5):
        key = frames_key(run_id).encode()
        self._front = b"*5\r\n$4\r\nXADD\r\n$%d\r\n%b\r\n$1\r\n*\r\n$%d\r\n%b\r\n" % (len(key), key, len(FRAME), FRAME)
        pool = redis.ConnectionPool.from_url(
            url, socket_timeout=timeout_seconds, socket_connect_timeout=timeout_seconds, retry=Retry(NoBackoff(), 0)
        )
        self._connection: Any = pool.make_connection()  # connects when it first sends, and again after an error

    def send(self, frame: bytes) -> None:
        try:
            self._connection.send_packed_command([b"%b$%d\r\n%b\r\n" % (self._front, len(frame), frame)])
            self._connection.read_response()
        except (redis.RedisError, OSError) as error:
            if not isinstance(error, redis.ResponseError):  # an answer may still come, which is not the next frame's
                self._connection.disconnect()
            raise SinkAway(str(error)) from error


class FileSink:
    """Frames appended to a file; `read_frames` gives them back."""

    def __init__(self, path: Path):
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def send(self, frame: bytes) -> None:
        try:
            append_frame(self._path, frame)
        except OSError as error:
            raise SinkAway(str(error)) from error


def append_frame(path: Path, frame: bytes) -> None:
    """Append all of `frame`, or nothing of it."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        before, rest = os.fstat(file).st_size, memoryview(frame)
        try:
            while rest:
                rest = rest[os.write(file, rest) :]
        except OSError:
            os.ftruncate(file, before)
            raise
    finally:
        os.close(file)


def read_frames(path: Path, at: int = 0) -> Iterator[tuple[bytes, int]]:
    """The whole frames of a file from byte `at`, each with the place where it ends.

    Stops at a frame that was cut off, as the last one is when its writer was killed.
    """
    try:
        file: BinaryIO = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        file.seek(at)
        while len(header := file.read(HEADER.itemsize)) == HEADER.itemsize:
            fields = np.frombuffer(header, HEADER, 1)[0]
            size = int(fields["frame_bytes"])
            if bytes(fields["magic"]) != MAGIC or size < HEADER.itemsize:
                return
            body = file.read(size - HEADER.itemsize)
            if len(body) < size - HEADER.itemsize:
                return
            at += size
            yield header + body, at


def whole_bytes(path: Path) -> int:
    """The size of a file of frames, once a frame that was cut off at its end is taken away; 0 if there is none."""
    try:
        end = max((end for _, end in read_frames(path)), default=0)
        if path.exists() and path.stat().st_size > end:
            os.truncate(path, end)
    except OSError:  # nothing can be written there either
        return 0
    return end


def resend_spill(path: Path, sink: Sink) -> int:
    """Send what a rank that is gone left in its spill file; how many frames went.

    What was sent is cut from the file, and the file goes when nothing is left. SinkAway when the
    sink stopped taking frames: call again later for the rest.
    """
    sent, done = 0, 0
    try:
        for frame, end in read_frames(path):
            sink.send(frame)
            sent, done = sent + 1, end
    except SinkAway:
        cut_front(path, done)
        raise
    path.unlink(missing_ok=True)
    return sent


def cut_front(path: Path, size: int) -> None:
    """Remove the first `size` bytes of a file; whoever is interrupted leaves the old file or the new one."""
    if not size:
        return
    rest = path.with_suffix(".rest")
    with path.open("rb") as old, rest.open("wb") as new:
        old.seek(size)
        while chunk := old.read(1 << 20):
            new.write(chunk)
    os.replace(rest, path)
