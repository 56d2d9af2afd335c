"""A worker's main process beside Celery's own work: it keeps a rank host alive, and says every second that it is there."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from typing import Any

import redis
from celery.worker import state
from django.conf import settings

from dashboard.conf import ROOT
from dashboard.runs.fleet import Worker
from trainer.trace.stream import WORKERS
from workers import rank_host
from workers.here import Here, devices, gpus

log = logging.getLogger(__name__)

BEAT_SECONDS = 1.0
EXPIRE_SECONDS = 5
_SLOWEST_RESTART_SECONDS = 30.0


class Presence:
    """Made in the worker's main thread, whose end the kernel takes for the worker's end."""

    def __init__(self, here: Here):
        self.here = here
        self._host = self._start_host()
        self._host_started = time.monotonic()
        self._pause = 1.0  # before the next start of a host that died
        self._status: dict[str, Any] = {}  # what the host said of itself, once it had loaded
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="presence", daemon=True)

    def show(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(timeout=3)
        self._host.terminate()
        with contextlib.suppress(redis.RedisError):  # it expires
            self._client().delete(WORKERS + self.here.name)

    def _start_host(self) -> subprocess.Popen[bytes]:
        device = "cuda" if "cuda" in devices() else "cpu"
        command = [sys.executable, "-m", "trainer.host", "--socket", self.here.rank_host, "--parent", str(os.getpid())]
        return subprocess.Popen([*command, "--device", device], cwd=ROOT, stdin=subprocess.DEVNULL, start_new_session=True)

    def _client(self) -> redis.Redis:
        return redis.Redis.from_url(settings.CONF.redis_url, socket_timeout=2, socket_connect_timeout=2)

    def _keep(self) -> None:
        # This thread outlives every error: it may be the parent of the rank host.
        client = self._client()
        while not self._ending.wait(BEAT_SECONDS):
            try:
                self._watch_host()
                client.set(WORKERS + self.here.name, json.dumps(asdict(self._beat())), ex=EXPIRE_SECONDS)
            except redis.RedisError:
                pass  # the next beat tries again
            except Exception:
                log.exception("the worker's heartbeat met an error and goes on")

    def _watch_host(self) -> None:
        status = self._host.poll()
        if status is not None:
            self._status = {}
            log.error("the rank host ended (status %s); it is started again in %.0f s", status, self._pause)
            if self._ending.wait(self._pause):
                return
            lived_long = time.monotonic() - self._host_started > 60
            self._pause = 1.0 if lived_long else min(self._pause * 2, _SLOWEST_RESTART_SECONDS)
            self._host, self._host_started = self._start_host(), time.monotonic()
        elif not self._status:
            self._status = rank_host.status(self.here.rank_host, patience_seconds=0.5) or {}

    def _beat(self) -> Worker:
        at_once, most = settings.CONF.runs_at_once, settings.CONF.most_ranks
        runs = [request.args[0] for request in list(state.active_requests)]
        return Worker(
            name=self.here.name, host=self.here.host, pid=self.here.pid, devices=devices(),
            cores=len(os.sched_getaffinity(0)), gpus=gpus(),
            ranks=most * at_once, ranks_free=most * max(0, at_once - len(runs)),
            realtime=bool(self._status.get("realtime")), host_ready=bool(self._status), runs=runs, beat_unix=time.time(),
        )
