"""What one rank said of its memory lately: from the live stream, or from the end of a store that is complete.

Both have bounds that do not grow with the run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import redis
from django.conf import settings

from dashboard.runs.models import Run
from trainer.folder import run_folder, store_folder
from trainer.trace.frame import HEADER, BrokenFrame, Frame, decode
from trainer.trace.store import StoreReader
from trainer.trace.stream import FRAME, frames_key

log = logging.getLogger(__name__)

STEPS = 3  # shown
ENTRIES_A_RANK, MOST_ENTRIES = 64, 2048  # of the stream: some six seconds
MOST_SEGMENTS = 2  # of the store
PREFIX = "memory/"


class MemoryRow(NamedTuple):
    time_ns: float
    kind: str
    bytes: float
    step: int


def recent(run: Run, rank: int) -> list[MemoryRow]:
    """Rows of the rank's latest steps, in the order of time, after a row for what each kind was when they began."""
    reader = StoreReader(store_folder(run_folder(settings.CONF.home, run.id)))
    frames = _stored(reader, rank) if reader.manifest.complete else _streamed(run, rank)
    rows = sorted(row for frame in frames for row in _rows(frame))
    first = max((row.step for row in rows), default=0) - STEPS + 1
    shown = [row for row in rows if row.step >= first]
    before = {row.kind: row for row in rows if row.step < first}
    return [row._replace(time_ns=shown[0].time_ns) for row in before.values()] + shown


def _stored(reader: StoreReader, rank: int) -> Iterator[Frame]:
    for segment in reader.segments[-MOST_SEGMENTS:]:
        yield from (frame for frame in reader.segment_frames(segment) if frame.rank == rank)


def _streamed(run: Run, rank: int) -> Iterator[Frame]:
    most = min(MOST_ENTRIES, ENTRIES_A_RANK * run.spec.ranks)
    try:
        with redis.Redis.from_url(settings.CONF.redis_url, socket_timeout=2, socket_connect_timeout=1) as client:
            entries = client.xrevrange(frames_key(run.id), count=most)
    except (redis.RedisError, ValueError) as error:
        log.info("the memory of run %s cannot be read: %s", run.id, error)
        return
    for _, fields in entries:
        data = fields.get(FRAME, b"")
        try:
            if len(data) >= HEADER.itemsize and np.frombuffer(data, HEADER, 1)[0]["rank"] == rank:
                yield decode(data)
        except BrokenFrame as error:
            log.info("a frame of run %s is passed over: %s", run.id, error)


def _rows(frame: Frame) -> Iterator[MemoryRow]:
    columns = (frame.counters[name].tolist() for name in ("time_ns", "name", "value", "step"))
    for time_ns, name, value, step in zip(*columns, strict=True):
        if (text := frame.strings[name]).startswith(PREFIX):
            yield MemoryRow(time_ns, text.removeprefix(PREFIX), value, step)
