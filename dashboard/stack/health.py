"""How the parts of a stack are, asked of each from a thread of its own, so that none that hangs holds up the others."""

from __future__ import annotations

import http.client
import json
import logging
import threading
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import redis
from celery import Celery

from dashboard.runs import fleet
from trainer.trace.stream import RECORDER

log = logging.getLogger(__name__)

STALLED_SECONDS = 15.0
_PING_EVERY_SECONDS = 3.0
_ASK_SOON_SECONDS, _ASK_SECONDS = 0.25, 1.0  # while something is coming up; when all is well


@dataclass(frozen=True)
class Health:
    is_ready: bool
    words: str  # what it does, or what it waits for


def redis_answers(url: str, timeout_seconds: float = 1.0) -> bool:
    try:
        client = redis.Redis.from_url(url, socket_timeout=timeout_seconds, socket_connect_timeout=timeout_seconds)
        return bool(client.ping())
    except (redis.RedisError, OSError):
        return False


def web_answers(url: str, timeout_seconds: float = 2.0) -> bool:
    """Whether the server answers at all; what it says is for browsers."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "127.0.0.1", address.port, timeout=timeout_seconds)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def recorder_pid(client: redis.Redis) -> int | None:
    """Of the recorder that was heard in the last seconds; None when none was."""
    beat: Any = client.get(RECORDER)
    return json.loads(beat)["pid"] if beat else None


class Probes:
    """Asks every part again and again; `found` holds the latest answers by name."""

    def __init__(self, redis_url: str, web_url: str, worker_node: str):
        self._redis_url, self._web_url, self._worker_node = redis_url, web_url, worker_node
        self._client = redis.Redis.from_url(redis_url, socket_timeout=1, socket_connect_timeout=1)
        self._celery = Celery(broker=redis_url)
        self._celery.conf.update(
            broker_connection_timeout=1, broker_transport_options={"socket_timeout": 2, "socket_connect_timeout": 1}
        )
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="probes", daemon=True)
        self.pids: dict[str, int] = {}  # set by the supervisor
        self.found: dict[str, Health] = {}
        self.worker_stalled = False
        self._worker: fleet.Worker | None = None  # its last heartbeat
        self._heard_worker_at = time.monotonic()
        self._pinged_at = 0.0

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ended.set()

    def excuse_worker(self) -> None:
        """It has answered, or has a reason not to: its silence counts from now."""
        self._heard_worker_at, self.worker_stalled = time.monotonic(), False

    def _keep(self) -> None:
        pause_seconds = _ASK_SOON_SECONDS
        while not self._ended.wait(pause_seconds):
            try:
                self._ask_all()
                pause_seconds = _ASK_SECONDS if all(health.is_ready for health in self.found.values()) else _ASK_SOON_SECONDS
            except Exception:
                log.exception("asking the parts how they are met an error and goes on")

    def _ask_all(self) -> None:
        found = {"redis": self._ask_redis()}
        if not found["redis"].is_ready:
            self.excuse_worker()
        if "web" in self.pids:
            found["web"] = Health(True, self._web_url) if web_answers(self._web_url) else Health(False, "loading the pages")
        try:
            if "recorder" in self.pids:
                there = recorder_pid(self._client) == self.pids["recorder"]
                found["recorder"] = Health(there, "" if there else "connecting to Redis")
            if "worker" in self.pids:
                found["worker"] = self._ask_worker()
        except (redis.RedisError, fleet.FleetUnknown):
            for name in {"recorder", "worker"} & self.pids.keys():
                found[name] = Health(False, "waiting for Redis")
        self.found = found

    def _ask_redis(self) -> Health:
        try:
            self._client.ping()
            return Health(True, _without_password(self._redis_url))
        except (redis.RedisError, OSError) as error:
            return Health(False, str(error))

    def _ask_worker(self) -> Health:
        beats = {worker.pid: worker for worker in fleet.workers(self._client)}
        worker = self._worker = beats.get(self.pids["worker"], self._worker)
        if worker is None or worker.pid != self.pids["worker"]:
            self.excuse_worker()  # it is just starting; the supervisor sees whether it ends instead
            return Health(False, "connecting to Redis")
        if worker.runs:
            self.excuse_worker()  # it is busy: its ranks matter more than its answer
        elif time.monotonic() - self._pinged_at > _PING_EVERY_SECONDS:
            self._pinged_at = time.monotonic()
            if worker.pid in beats and self._worker_answers():
                self.excuse_worker()
            self.worker_stalled = time.monotonic() - self._heard_worker_at > STALLED_SECONDS
        if not worker.host_ready:
            return Health(False, "loading torch")
        pace = "real-time class granted" if worker.realtime else "no real-time class"
        return Health(True, f"{worker.ranks} rank slots, {', '.join(worker.devices)}, {worker.cores} cores, {pace}")

    def _worker_answers(self) -> bool:
        """Whether Celery hears commands; a worker can stall after Redis was away, though its heartbeat goes on."""
        try:
            return bool(self._celery.control.ping(destination=[self._worker_node], timeout=1.0))
        except Exception as error:  # kombu raises whatever its transport raised
            log.info("the worker could not be asked: %s", error)
            return False


def _without_password(url: str) -> str:
    address = urlsplit(url)
    return f"{address.hostname}:{address.port or 6379}"
