"""Which workers are there, from their heartbeats."""

from __future__ import annotations

import json
from dataclasses import dataclass

import redis
from django.conf import settings

from trainer.trace.stream import WORKERS


@dataclass(frozen=True)
class Worker:
    """One worker's last heartbeat; its key expires seconds after it falls silent."""

    name: str
    host: str
    pid: int
    devices: list[str]
    cores: int
    gpus: int
    ranks: int  # rank slots in all
    ranks_free: int
    realtime: bool  # may paced ranks use the real-time class?
    host_ready: bool  # torch is loaded, ranks start at once
    runs: list[str]
    beat_unix: float


class FleetUnknown(Exception):
    """Redis does not answer, so nobody knows which workers are there."""


def workers(client: redis.Redis | None = None) -> list[Worker]:
    try:
        client = client or redis.Redis.from_url(settings.CONF.redis_url, socket_timeout=2, socket_connect_timeout=2)
        keys = sorted(client.scan_iter(match=f"{WORKERS}*", count=100))
        return [Worker(**json.loads(value)) for value in (client.mget(keys) if keys else []) if value]
    except (redis.RedisError, ValueError) as error:
        raise FleetUnknown(str(error)) from error
