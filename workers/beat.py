"""A run's heartbeat: as long as somebody supervises it, its key in Redis changes every second."""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import asdict

import redis

from trainer.trace.stream import LIVE_RUNS, RunBeat, beat_key
from workers.here import Here

log = logging.getLogger(__name__)

BEAT_SECONDS = 1.0
EXPIRE_SECONDS = 120  # long after its end: the reaper reads from it who fell silent


class Heart:
    """Beats from a thread of its own, since the supervisor may have to wait for the database."""

    def __init__(self, client: redis.Redis, run_id: str, here: Here, pid: int):
        self._client = client
        self._run_id = run_id
        self._here = here
        self._pid = pid
        self._count = 0
        self._is_listed = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="heart", daemon=True)

    def __enter__(self) -> Heart:
        self._beat()  # before any rank starts, so that the recorder is there when its first frame comes
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _keep(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            self._beat()

    def _beat(self) -> None:
        self._count += 1
        beat = RunBeat(self._here.name, self._here.host, self._here.pid, self._pid, self._count)
        try:
            if not self._is_listed:  # once: the recorder takes it off the list when all is sealed
                self._client.sadd(LIVE_RUNS, self._run_id)
                self._is_listed = True
            self._client.set(beat_key(self._run_id), json.dumps(asdict(beat)), ex=EXPIRE_SECONDS)
        except redis.RedisError as error:
            log.info("run %s: no heartbeat: %s", self._run_id, error)
