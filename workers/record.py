"""The recorder: from the live streams of all runs to their stores, step figures and summaries.

Entries are acknowledged and trimmed only once they are sealed on disk. After a kill at any moment
the next recorder gets what was not acknowledged again, and knows by rank and sequence number what
had been sealed.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.db import DatabaseError, close_old_connections
from django.utils import timezone
from redis.backoff import NoBackoff
from redis.retry import Retry

from dashboard.logs import about_run
from dashboard.runs import services
from dashboard.runs.models import Run
from trainer.folder import run_folder, store_folder
from trainer.trace.stream import EVENT, LIVE_RUNS, RECORDER, RECORDERS, frames_key
from workers.record_run import RunRecorder
from workers.tally import Tally

log = logging.getLogger(__name__)

CONSUMER = "recorder"  # one at a time, so a new one inherits what was pending
READ_ENTRIES = 64  # of each run at once: 16 MB if all frames are full
BLOCK_MS = 200  # how long to wait for entries: a new run is noticed as late as this
NOTE_SECONDS = 1.0
BEAT_SECONDS, BEAT_EXPIRES_SECONDS = 1.0, 5
RETRY_SECONDS = 1.0  # after the disk or the database refused
LONGEST_PAUSE_SECONDS = 2.0  # between attempts to reach Redis
STREAM_GRACE_SECONDS = 60  # a sealed run's stream stays for viewers in the middle of it


def record(stop: threading.Event) -> None:
    """Record until `stop` is set. What is not sealed then stays in the streams for the next recorder."""
    watches = {name: import_module(f"workers.{name}").watch for name in ("reap", "deliver", "keep")}
    with _only_recorder(settings.CONF.home, stop):
        if stop.is_set():
            return
        for name, watch in watches.items():
            threading.Thread(target=watch, args=(stop,), name=name, daemon=True).start()
        Recorder(settings.CONF.redis_url, settings.CONF.home).work(stop)


@contextmanager
def _only_recorder(home: Path, stop: threading.Event) -> Iterator[None]:
    """Two recorders would write over each other: wait until there is no other. One that was killed holds no lock."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "recorder.lock").open("w") as lock:
        has_waited = False
        while not stop.is_set():
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not has_waited:
                    log.info("another recorder is at work here; waiting for its end")
                has_waited = True
                stop.wait(0.5)
        yield


class Recorder:
    def __init__(self, redis_url: str, home: Path):
        self._home = home
        # Any: the library's types describe both of its protocols and its asynchronous client at once.
        self._client: Any = redis.Redis.from_url(
            redis_url, socket_timeout=5, socket_connect_timeout=2, retry=Retry(NoBackoff(), 0)
        )
        self._runs: dict[str, RunRecorder] = {}
        self._joined: set[str] = set()  # runs whose group is there and whose pending entries were taken
        self._noted: dict[str, dict[str, Any]] = {}
        self._note_at: dict[str, float] = {}
        self._retry_at: dict[str, float] = {}
        self._beat_at = 0.0
        self._lag_seconds = 0.0
        self._pause_seconds = 0.0
        self._tally = Tally()  # over all runs, since this recorder began

    def work(self, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                close_old_connections()
                self._round(stop)
                if self._pause_seconds:
                    log.info("Redis answers again")
                self._pause_seconds = 0.0
            except redis.RedisError as error:
                self._wait_for_redis(error, stop)
            except DatabaseError as error:
                log.warning("the database does not answer: %s", error)
                stop.wait(RETRY_SECONDS)
            except Exception:
                log.exception("a round of the recorder failed")
                self._joined.clear()  # entries of its batch may not have been taken
                stop.wait(RETRY_SECONDS)

    def _wait_for_redis(self, error: Exception, stop: threading.Event) -> None:
        if not self._pause_seconds:
            log.warning("Redis does not answer, recording goes on when it does: %s", error)
        self._joined.clear()  # an answer may have been lost: what was delivered with it is pending
        self._pause_seconds = min(max(2 * self._pause_seconds, 0.1), LONGEST_PAUSE_SECONDS)
        stop.wait(self._pause_seconds)

    def _round(self, stop: threading.Event) -> None:
        self._beat()
        for run_id in sorted(member.decode() for member in self._client.smembers(LIVE_RUNS)):
            if run_id not in self._runs and time.monotonic() >= self._retry_at.get(run_id, 0.0):
                with about_run(run_id):
                    self._open(run_id)
        for run in self._runs.values():
            if run.run_id not in self._joined:
                self._join(run)
        self._read_on(stop)
        for run in list(self._runs.values()):
            with about_run(run.run_id):
                self._tend(run)

    def _open(self, run_id: str) -> None:
        found = Run.objects.filter(pk=run_id).first()
        if found is None:
            log.warning("run %s is not in the database: its stream is left to expire", run_id)
            self._let_go(run_id)
            return
        try:
            self._runs[run_id] = RunRecorder(run_id, found.spec, store_folder(run_folder(self._home, run_id)))
        except Exception:  # its folder or its spec; other runs are recorded meanwhile
            log.exception("run %s cannot be recorded", run_id)
            self._retry_at[run_id] = time.monotonic() + 10 * RETRY_SECONDS

    def _join(self, run: RunRecorder) -> None:
        """Be in the run's group, and take what an earlier recorder, or a lost answer, left unacknowledged."""
        key = frames_key(run.run_id)
        try:
            self._client.xgroup_create(key, RECORDERS, id="0", mkstream=True)
        except redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
        after: bytes | str = "0"
        while True:
            answer = self._client.xreadgroup(RECORDERS, CONSUMER, {key: after}, count=READ_ENTRIES)
            entries = answer[0][1] if answer else []
            if not entries:
                break
            after = entries[-1][0]
            self._take(run, entries)
        self._joined.add(run.run_id)

    def _read_on(self, stop: threading.Event) -> None:
        readable = {frames_key(run_id): ">" for run_id, run in self._runs.items() if run_id in self._joined and not run.is_full}
        if not readable:
            stop.wait(BLOCK_MS / 1000)
            return
        answer = self._client.xreadgroup(RECORDERS, CONSUMER, readable, count=READ_ENTRIES, block=BLOCK_MS)
        by_key = {frames_key(run_id).encode(): run for run_id, run in self._runs.items()}
        self._lag_seconds = 0.0
        for key, entries in answer or []:
            self._take(by_key[key], entries)
            self._lag_seconds = max(self._lag_seconds, time.time() - int(entries[-1][0].split(b"-")[0]) / 1000)

    def _take(self, run: RunRecorder, entries: list[tuple[bytes, dict[bytes, bytes]]]) -> None:
        with about_run(run.run_id):
            for entry_id, fields in entries:
                run.take(entry_id, fields)
                if run.is_full:
                    self._seal_or_later(run)
            self._tell_steps(run)

    def _seal_or_later(self, run: RunRecorder) -> None:
        """What was read with the rest is taken even if the disk or the database refuses: a group reads nothing twice."""
        try:
            self._seal(run)
        except (OSError, DatabaseError) as error:
            log.error("run %s: %s; sealed later", run.run_id, error)

    def _tell_steps(self, run: RunRecorder) -> None:
        rows = run.new_rows()
        for at in range(0, len(rows), 100):
            event = json.dumps({"type": "steps", "rows": rows[at : at + 100]}, separators=(",", ":"))
            self._client.xadd(frames_key(run.run_id), {EVENT: event})

    def _tend(self, run: RunRecorder) -> None:
        """Seal, tell and close what is due."""
        now = time.monotonic()
        if now < self._retry_at.get(run.run_id, 0.0):
            return
        try:
            if run.has_ended or run.is_complete:
                self._close(run)
                return
            if run.is_due:
                self._seal(run)
            if now >= self._note_at.get(run.run_id, 0.0):
                self._note_at[run.run_id] = now + NOTE_SECONDS
                self._note(run)
        except redis.RedisError:
            raise
        except Exception as error:  # the database, the disk: other runs are recorded meanwhile
            is_known = isinstance(error, DatabaseError)
            log.error("run %s: %s; again in %s s", run.run_id, error, RETRY_SECONDS, exc_info=not is_known)
            self._retry_at[run.run_id] = now + RETRY_SECONDS

    def _seal(self, run: RunRecorder, complete: bool = False) -> bool:
        """Whether it worked; if not, everything stays unacknowledged and is tried again."""
        now = time.monotonic()
        if now < self._retry_at.get(run.run_id, 0.0):
            return False
        before = run.tally
        try:
            sealed, trim_to = run.seal(complete)
        except Exception:  # most likely the disk is full
            if not Run.objects.filter(pk=run.run_id).exists():
                log.info("run %s was removed: what came of it meanwhile goes too", run.run_id)
                self._let_go(run.run_id)
                return False
            log.exception("run %s cannot be sealed", run.run_id)
            self._retry_at[run.run_id] = now + RETRY_SECONDS
            return False
        self._tally = self._tally.plus_growth(before, run.tally)
        key = frames_key(run.run_id)
        for at in range(0, len(sealed), 1000):
            self._client.xack(key, RECORDERS, *sealed[at : at + 1000])
        self._client.xtrim(key, minid=trim_to, approximate=False)
        return True

    def _note(self, run: RunRecorder, **more: Any) -> None:
        fields = {"figures": run.figures(), "realtime": run.realtime}
        if more or self._noted.get(run.run_id) != fields:
            services.note(run.run_id, **fields, **more)
            self._noted[run.run_id] = fields

    def _close(self, run: RunRecorder) -> None:
        """The run has ended. Each step can be done twice, so a kill between two of them does no harm."""
        run.close_steps()
        self._tell_steps(run)
        if self._seal(run, complete=True):
            self._note(run, picture=run.picture(), sealed_at=timezone.now())
            self._let_go(run.run_id)
            log.info("run %s is sealed: %s spans", run.run_id, run.figures()["spans"])

    def _let_go(self, run_id: str) -> None:
        self._client.expire(frames_key(run_id), STREAM_GRACE_SECONDS)
        self._client.srem(LIVE_RUNS, run_id)
        self._joined.discard(run_id)
        for kept in (self._runs, self._noted, self._note_at, self._retry_at):
            kept.pop(run_id, None)

    def _beat(self) -> None:
        if time.monotonic() >= self._beat_at:
            self._beat_at = time.monotonic() + BEAT_SECONDS
            beat = {
                "pid": os.getpid(), "host": socket.gethostname(), "lag": round(self._lag_seconds, 3),
                "sealed": asdict(self._tally),
            }
            self._client.set(RECORDER, json.dumps(beat), ex=BEAT_EXPIRES_SECONDS)
