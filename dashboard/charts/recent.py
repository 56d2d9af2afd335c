"""The latest frames of a run: from the live stream, or from the end of a store that is complete.

Both have bounds that do not grow with the run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np
import redis
from django.conf import settings

from dashboard.runs import kept
from dashboard.runs.models import Run
from trainer.trace.frame import HEADER, BrokenFrame, Frame, decode
from trainer.trace.store import StoreReader
from trainer.trace.stream import FRAME, frames_key

log = logging.getLogger(__name__)

ENTRIES_A_RANK, MOST_ENTRIES = 64, 2048  # of the stream: some six seconds
MOST_SEGMENTS = 2  # of the store


def recent_frames(run: Run, ranks: frozenset[int]) -> Iterator[Frame]:
    """Those of `ranks`, in no order that means anything."""
    reader = StoreReader(kept.folder_of(settings.CONF.home, run.id))
    return _stored(reader, ranks) if reader.manifest.complete else _streamed(run, ranks)


def _stored(reader: StoreReader, ranks: frozenset[int]) -> Iterator[Frame]:
    for segment in reader.segments[-MOST_SEGMENTS:]:
        yield from (frame for frame in reader.segment_frames(segment) if frame.rank in ranks)


def _streamed(run: Run, ranks: frozenset[int]) -> Iterator[Frame]:
    most = min(MOST_ENTRIES, ENTRIES_A_RANK * run.spec.ranks)
    try:
        with redis.Redis.from_url(settings.CONF.redis_url, socket_timeout=2, socket_connect_timeout=1) as client:
            entries = client.xrevrange(frames_key(run.id), count=most)
    except (redis.RedisError, ValueError) as error:
        log.info("the latest frames of run %s cannot be read: %s", run.id, error)
        return
    for _, fields in entries:
        data = fields.get(FRAME, b"")
        try:
            if len(data) >= HEADER.itemsize and int(np.frombuffer(data, HEADER, 1)[0]["rank"]) in ranks:
                yield decode(data)
        except BrokenFrame as error:
            log.info("a frame of run %s is passed over: %s", run.id, error)
