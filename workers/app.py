"""The Celery app. A task is a whole run: few, long, started at once or not at all, never started twice.

Start it with `celery -A workers.app worker`, with DJANGO_SETTINGS_MODULE=dashboard.settings.
"""

from __future__ import annotations

import logging
import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

import django
from celery import Celery, signals
from django.conf import settings
from kombu import Queue

django.setup()
logging.captureWarnings(True)  # they are lines of the log like any other

from dashboard.runs.door import queue_of  # noqa: E402
from trainer.lifeline import die_with_parent  # noqa: E402
from workers import here  # noqa: E402
from workers.presence import Presence  # noqa: E402

# Without Celery's own help for Django, which would load every page into the worker to check it.
app = Celery("lockstep", broker=settings.CONF.redis_url, include=["workers.tasks"], fixups=[])
app.conf.update(
    # A task is acknowledged as it starts: were it later, a run that is long or kills its worker would start again.
    task_acks_late=False,
    # How long Redis keeps a task that was taken but not acknowledged before another worker gets it. With early
    # acknowledgement that is a moment; a month is longer than any run, should a message linger.
    broker_transport_options={"visibility_timeout": 30 * 24 * 3600, "socket_keepalive": True, "health_check_interval": 10},
    # A worker takes a task only when it is free to start it; else a run would wait here while another worker is idle.
    worker_prefetch_multiplier=1,
    worker_disable_prefetch=True,
    worker_concurrency=settings.CONF.runs_at_once,
    # Runs go on without Redis; so the worker waits for it, however long, and drops nothing meanwhile.
    broker_connection_retry=True,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    # A crowded machine may take long to fork; the default of four seconds would kill what is coming up.
    worker_proc_alive_timeout=60,
    # How a run went is in the database; results and events in Redis would have no reader.
    task_ignore_result=True,
    worker_send_task_events=False,
    # Whoever can write to Redis must not be able to run code here.
    accept_content=["json"],
    task_serializer="json",
    # A worker listens to the queues of the devices it has, unless told otherwise with -Q.
    task_queues=[Queue(queue_of(device)) for device in here.devices()],
    task_default_queue=queue_of("cpu"),
    # What a run's process prints is for the worker's log as it is.
    worker_redirect_stdouts=False,
    timezone="UTC",
)



@signals.setup_logging.connect
def _keep_logging(**_: Any) -> None:
    """Django's settings say how logs look; that somebody hears this signal keeps Celery from setting up its own."""


_presence: Presence | None = None


@signals.worker_init.connect
def _start_rank_host(**_: Any) -> None:
    """Before the pool forks: its processes have to know where the rank host listens."""
    global _presence
    _presence = Presence(here.find_out())


@signals.worker_ready.connect
def _show(**_: Any) -> None:
    if _presence is not None:
        _presence.show()


@signals.worker_process_init.connect
def _tie(**_: Any) -> None:
    """A process that runs tasks dies with the worker, and its ranks with it."""
    if _presence is not None:
        die_with_parent(_presence.here.pid)


@signals.worker_shutting_down.connect
def _close(**_: Any) -> None:
    if _presence is not None:
        _presence.here.close()


@signals.worker_shutdown.connect
def _end_rank_host(**_: Any) -> None:
    if _presence is not None:
        _presence.end()
