"""The figures of a run's steps: those on disk, and those that only the live stream holds yet."""

from __future__ import annotations

import json
import logging
from collections import deque
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import redis
from django.conf import settings

from dashboard.charts.chart import StepRow
from dashboard.runs import kept
from dashboard.runs.models import Run
from trainer.folder import run_folder, store_folder
from trainer.trace import journal
from trainer.trace.manifest import Manifest, journal_file, load
from trainer.trace.stream import EVENT, frames_key

log = logging.getLogger(__name__)

READ_ENTRIES = 256
KEPT_RUNS = 16
RECENT = 32  # steps whose whole rows are kept, a number for each rank in them
CHARTED = (
    "loss", "bubble_share", "learning_rate", "grad_norm", "samples",
    "period_ns", "samples_per_second", "exposed_share", "complete",  # to compare runs
)


def step_rows(run: Run) -> list[StepRow]:
    """One row a step, in the steps' order, with what charts show. When Redis is away, what is sealed."""
    return _steps_of(str(settings.CONF.home), run.id).read()


def recent_rows(run: Run) -> list[dict[str, Any]]:
    """The whole rows of the latest RECENT steps, in the steps' order."""
    return _steps_of(str(settings.CONF.home), run.id).recent()


class _Steps:
    """One run's rows as far as they were read; a live chart asks every second, and reads what is new."""

    def __init__(self, home: str, run_id: str):
        self._run_id = run_id
        self._home = Path(home)
        self._folder = store_folder(run_folder(self._home, run_id))
        self._rows: dict[int, StepRow] = {}
        self._recent: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self._journal_bytes = 0
        self._entry = "0-0"  # of the stream, the last that was looked at
        self._lock = Lock()

    def read(self) -> list[StepRow]:
        with self._lock:
            manifest = load(kept.folder_of(self._home, self._run_id))
            self._read_journal(manifest)
            if not manifest.complete:
                self._read_stream(manifest)
            return [self._rows[step] for step in sorted(self._rows)]

    def recent(self) -> list[dict[str, Any]]:
        self.read()
        with self._lock:
            latest = {row["step"]: row for row in self._recent}  # a row may come from the stream and then from the journal
            return [latest[step] for step in sorted(latest)]

    def _read_journal(self, manifest: Manifest) -> None:
        valid = manifest.journals.get("steps", 0)
        if _number(self._entry) < _number(manifest.sealed_through):  # else all of it came from the stream before
            self._keep(journal.read(journal_file(self._folder, "steps"), self._journal_bytes, valid))
        self._journal_bytes = valid

    def _read_stream(self, manifest: Manifest) -> None:
        after = max(self._entry, manifest.sealed_through, key=_number)
        try:
            with redis.Redis.from_url(settings.CONF.redis_url, socket_timeout=2, socket_connect_timeout=1) as client:
                while entries := client.xrange(frames_key(self._run_id), min=f"({after}", count=READ_ENTRIES):
                    for _, fields in entries:
                        event = json.loads(fields[EVENT]) if EVENT in fields else {}
                        if event.get("type") == "steps":
                            self._keep(event["rows"])
                    self._entry = after = entries[-1][0].decode()
        except (redis.RedisError, ValueError) as error:
            log.info("the newest steps of run %s cannot be read: %s", self._run_id, error)

    def _keep(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            self._recent.append(row)
            self._rows[row["step"]] = {"step": row["step"], **{key: row.get(key) for key in CHARTED}}


@lru_cache(maxsize=KEPT_RUNS)
def _steps_of(home: str, run_id: str) -> _Steps:
    return _Steps(home, run_id)


def _number(id: str) -> tuple[int, int]:
    milliseconds, counter = id.split("-")
    return int(milliseconds), int(counter)
