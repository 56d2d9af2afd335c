"""Puts sealed runs into the storage that is set, and lets copies at home go that would take more room than they may.

`watch` runs in a thread of the recorder, so that no run waits for another's upload to be recorded.
"""

from __future__ import annotations

import logging
import threading
import time

from django.conf import settings
from django.db import DatabaseError, close_old_connections
from django.utils import timezone

from dashboard.logs import about_run
from dashboard.runs import kept, services
from dashboard.runs.models import Run

log = logging.getLogger(__name__)

EVERY_SECONDS = 1.0
AWAY_SECONDS = 10.0  # after the storage refused
TIDY_SECONDS = 20.0
_GB = 10**9


def watch(stop: threading.Event) -> None:
    if not kept.is_set():
        return
    tidy_at = 0.0
    pause_seconds = EVERY_SECONDS
    while not stop.wait(pause_seconds):
        pause_seconds = EVERY_SECONDS
        try:
            close_old_connections()
            keep_sealed()
            if time.monotonic() >= tidy_at:
                tidy_at = time.monotonic() + TIDY_SECONDS
                let_copies_go(settings.CONF.storage_local_gb * _GB)
        except kept.StorageAway as away:
            log.warning("%s; again in %.0f s", away, AWAY_SECONDS)
            pause_seconds = AWAY_SECONDS
        except DatabaseError as error:
            log.warning("the database does not answer: %s", error)
        except Exception:
            log.exception("keeping sealed runs met an error and goes on")
            pause_seconds = AWAY_SECONDS


def keep_sealed() -> None:
    """Every run that is sealed and not kept yet. StorageAway, and then the rest stays due."""
    due = Run.objects.filter(sealed_at__isnull=False, kept_at=None, deleted_at=None).order_by("sealed_at")
    for run_id in due.values_list("pk", flat=True):
        with about_run(run_id):
            kept.keep(run_id)
            services.note(run_id, kept_at=timezone.now())
            log.info("run %s is kept in the storage", run_id)


def let_copies_go(most_bytes: int) -> None:
    """Of kept runs those stay at home that came there last, as many as fit; the others whoever reads them fetches again."""
    run_ids = Run.objects.filter(kept_at__isnull=False).values_list("pk", flat=True)
    copies = sorted(((*kept.copy_at_home(run_id), run_id) for run_id in run_ids), reverse=True)
    total = 0
    for _, size, run_id in copies:
        total += size
        if size and total > most_bytes:
            kept.drop_copy(run_id)
            log.info("run %s is in the storage alone from now on", run_id)
