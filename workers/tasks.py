"""What a worker can be asked to do, by name. Thin: the work is in `workers.supervise`."""

from __future__ import annotations

from celery import shared_task

from dashboard.runs.door import RUN_TASK
from workers import here
from workers.supervise import take


@shared_task(name=RUN_TASK)
def run(run_id: str) -> None:
    take(run_id, here.found())
