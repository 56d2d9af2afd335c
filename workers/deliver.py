"""Sends what teams' webhooks are due. `watch` runs in a thread of the recorder: one process, so nothing is sent twice."""

from __future__ import annotations

import logging
import threading

from django.db import DatabaseError, close_old_connections

from dashboard.notices import hooks

log = logging.getLogger(__name__)

EVERY_SECONDS = 1.0


def watch(stop: threading.Event) -> None:
    while not stop.wait(EVERY_SECONDS):
        try:
            close_old_connections()
            hooks.deliver_due()
        except DatabaseError as error:
            log.warning("the database does not answer: %s", error)
        except Exception:
            log.exception("a webhook met an error, and the next ones are tried")
