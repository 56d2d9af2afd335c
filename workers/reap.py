"""Runs whose worker is gone become "lost", with the reason; runs that nobody takes are put in the queue again;
runs that were deleted long enough ago are removed.

`watch` runs in a thread of the recorder, so that it lives apart from the workers it judges.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

import redis
from django.conf import settings
from django.db import DatabaseError, close_old_connections
from django.utils import timezone

from dashboard.logs import about_run
from dashboard.runs import curation, door, fleet, services
from dashboard.runs.models import ENDED, Run, State
from trainer.folder import run_folder
from trainer.trace.sinks import SinkAway
from trainer.trace.stream import RunBeat, beat_key
from workers.ending import close_stream

log = logging.getLogger(__name__)

EVERY_SECONDS = 1.0
SILENT_SECONDS = 6.0
UNTAKEN_SECONDS = 5.0
PURGE_EVERY_SECONDS = 600.0
OWED_AFTER = timedelta(seconds=30)  # after a run's end, its stream must have an end too


def watch(stop: threading.Event) -> None:
    client = redis.Redis.from_url(settings.CONF.redis_url, socket_timeout=2, socket_connect_timeout=2)
    reaper = Reaper(client)
    while not stop.wait(EVERY_SECONDS):
        try:
            close_old_connections()
            reaper.look(time.monotonic())
        except (redis.RedisError, fleet.FleetUnknown, SinkAway) as error:
            log.info("Redis does not answer; nobody is judged until it does: %s", error)
            reaper.forget()
        except DatabaseError as error:
            log.warning("the database does not answer: %s", error)
        except Exception:
            log.exception("the reaper met an error and goes on")


@dataclass
class Heard:
    at: float  # time.monotonic() of the last beat that was new
    beat: RunBeat | None = None


class Reaper:
    def __init__(self, client: redis.Redis):
        self._client = client
        self._heard: dict[str, Heard] = {}
        self._untaken_since: dict[str, float] = {}
        self._owed: set[str] = set()  # runs whose stream has no end yet
        self._looked_for_owed = 0.0
        self._purge_at = 0.0

    def forget(self) -> None:
        """Redis was away: silence until now says nothing."""
        self._heard.clear()
        self._untaken_since.clear()

    def look(self, now: float) -> None:
        self._client.ping()
        self._listen(services.active_runs(), now)
        self._put_back(now)
        self._pay(now)
        self._purge(now)

    def _listen(self, runs: list[Run], now: float) -> None:
        beats = self._client.mget([beat_key(run.id) for run in runs]) if runs else []
        for run, value in zip(runs, beats, strict=True):
            beat = RunBeat(**json.loads(value)) if value else None
            heard = self._heard.setdefault(run.id, Heard(now, beat))
            if beat is not None and beat != heard.beat:
                heard.at, heard.beat = now, beat
            elif now - heard.at >= SILENT_SECONDS:
                with about_run(run.id):
                    self._lose(run, heard, now)
        active = {run.id for run in runs}
        self._heard = {run_id: heard for run_id, heard in self._heard.items() if run_id in active}

    def _lose(self, run: Run, heard: Heard, now: float) -> None:
        is_there = run.worker in {worker.name for worker in fleet.workers(self._client)}
        if services.move(run.id, State.LOST, reason=reason_lost(run.worker, heard.beat, now - heard.at, is_there)):
            log.warning("run %s is lost", run.id)
            self._owed.add(run.id)

    def _put_back(self, now: float) -> None:
        """Queue again what has waited while a worker that could take it is idle: its task was lost on the way."""
        waiting = list(Run.objects.filter(state=State.QUEUED).order_by("created_at"))
        idle = idle_devices(fleet.workers(self._client)) if waiting else set()
        untaken = {run.id for run in waiting if run.device in idle}
        self._untaken_since = {run_id: self._untaken_since.get(run_id, now) for run_id in untaken}
        for run in waiting:
            if now - self._untaken_since.get(run.id, now) <= UNTAKEN_SECONDS:
                continue
            self._untaken_since[run.id] = now
            if not self._client.llen(door.queue_of(run.device)):  # else it is there, and more of it would not help
                with about_run(run.id):
                    log.warning("run %s waits although a worker is idle: it is put in the queue again", run.id)
                    door.put_in_queue(run.id, run.device)

    def _pay(self, now: float) -> None:
        """Close the streams of runs whose supervisor could not, whether it died or Redis was away for long."""
        if now - self._looked_for_owed > OWED_AFTER.total_seconds():
            self._looked_for_owed = now
            ended = Run.objects.filter(state__in=ENDED, sealed_at=None, ended_at__lt=timezone.now() - OWED_AFTER)
            self._owed.update(ended.filter(started_at__isnull=False).values_list("pk", flat=True))
        for run in Run.objects.filter(pk__in=self._owed, sealed_at=None):
            folder = run_folder(settings.CONF.home, run.id)
            close_stream(self._client, settings.CONF.redis_url, run.id, folder, run.spec.ranks)
            self._owed.discard(run.id)

    def _purge(self, now: float) -> None:
        if now >= self._purge_at:
            self._purge_at = now + PURGE_EVERY_SECONDS
            for run_id in curation.purge(settings.CONF.home, self._client):
                with about_run(run_id):
                    log.info("run %s was deleted and is removed", run_id)


def idle_devices(workers: Iterable[fleet.Worker]) -> set[str]:
    return {device for worker in workers if worker.ranks_free > 0 for device in worker.devices}


def reason_lost(worker: str, beat: RunBeat | None, silent_seconds: float, worker_is_there: bool) -> str:
    """Who fell silent, for how long, and how much of it."""
    if beat is None:
        place = f"Worker {worker}"
    elif worker_is_there:
        return (f"The process that ran it ({beat.pid} of worker {worker} on {beat.host}) has not been heard for "
                f"{silent_seconds:.0f} s: it is gone, or was stopped. The worker itself is still there.")
    else:
        place = f"Worker {worker} on {beat.host} (process {beat.worker_pid})"
    if worker_is_there:
        return f"{place} took it, but nothing has been heard of it for {silent_seconds:.0f} s. The worker itself is still there."
    return f"{place} has not been heard for {silent_seconds:.0f} s: the whole worker is gone."
