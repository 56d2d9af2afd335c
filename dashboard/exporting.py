"""The Celery app of the exporter: it makes large exports of runs, one at a time.

A worker's queue is no place for them: a run may keep a worker busy for days. Start it with
`celery -A dashboard.exporting worker --pool solo`, with DJANGO_SETTINGS_MODULE=dashboard.settings.
"""

from __future__ import annotations

import logging
import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

import django
from celery import Celery, signals
from django.conf import settings
from django.db import close_old_connections
from kombu import Queue

django.setup()
logging.captureWarnings(True)  # they are lines of the log like any other

from dashboard.logs import about_run  # noqa: E402
from dashboard.runs.door import EXPORT_TASK, EXPORTS_QUEUE  # noqa: E402
from dashboard.runs.exports import making  # noqa: E402
from dashboard.runs.exports.formats import FORMATS  # noqa: E402
from dashboard.runs.models import Run  # noqa: E402

# Without Celery's own help for Django, which would load every page into this process to check it.
app = Celery("lockstep-exporter", broker=settings.CONF.redis_url, fixups=[])
app.conf.update(
    # Acknowledged as it starts: one that brings this process down must not do so for ever.
    task_acks_late=False,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={"socket_keepalive": True, "health_check_interval": 10},
    task_ignore_result=True,
    accept_content=["json"],
    task_serializer="json",
    task_queues=[Queue(EXPORTS_QUEUE)],
    task_default_queue=EXPORTS_QUEUE,
    worker_redirect_stdouts=False,
    timezone="UTC",
)


@signals.setup_logging.connect
def _keep_logging(**_: Any) -> None:
    """Django's settings say how logs look; that somebody hears this signal keeps Celery from setting up its own."""


@app.task(name=EXPORT_TASK)
def export(run_id: str, key: str) -> None:
    close_old_connections()
    run = Run.objects.filter(pk=run_id, deleted_at=None).first()
    if run is not None and key in FORMATS:
        with about_run(run_id):
            making.make(run, key)
