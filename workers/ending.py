"""The last entries of a run's stream: what its ranks could not send, then the end."""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path

import redis

from trainer.folder import spill_file
from trainer.trace.sinks import RedisSink, SinkAway, resend_spill
from trainer.trace.stream import EVENT, LIVE_RUNS, frames_key

log = logging.getLogger(__name__)

_ASK_AGAIN_SECONDS = 1.0


def close_stream(client: redis.Redis, redis_url: str, run_id: str, folder: Path, ranks: int) -> None:
    """Send what lies spilled, then the end event, after which nothing comes. Can be repeated; raises when Redis is away."""
    spills = [path for path in (spill_file(folder, rank) for rank in range(ranks)) if path.exists()]
    if spills:
        sink = RedisSink(redis_url, run_id)
        for path in spills:
            resend_spill(path, sink)
    client.sadd(LIVE_RUNS, run_id)
    client.xadd(frames_key(run_id), {EVENT: json.dumps({"type": "end"})})


def close_stream_patiently(
    client: redis.Redis, redis_url: str, run_id: str, folder: Path, ranks: int, patience_seconds: float
) -> bool:
    """The same, waiting for Redis if it is away; whether it came back in time. If not, the reaper does it later."""
    give_up = time.monotonic() + patience_seconds
    while True:
        try:
            close_stream(client, redis_url, run_id, folder, ranks)
            return True
        except (redis.RedisError, SinkAway) as error:
            if time.monotonic() > give_up:
                log.warning("run %s: Redis stays away, the end of its stream is owed: %s", run_id, error)
                return False
            time.sleep(_ASK_AGAIN_SECONDS)
