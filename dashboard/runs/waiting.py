"""What a queued run waits for, in words."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.runs import fleet
from dashboard.runs.models import Run, State


def waits_for(run: Run) -> str:
    """Empty when the run does not wait."""
    if run.state != State.QUEUED:
        return ""
    try:
        return words(run.device, fleet.workers())
    except fleet.FleetUnknown:
        return "Redis does not answer; the queue moves again when it is back."


def words(device: str, there: Sequence[fleet.Worker]) -> str:
    fitting = [worker for worker in there if device in worker.devices]
    if not fitting:
        others = f" {_count(len(there))} for other devices." if there else ""
        return f"No worker is there that takes {device} jobs: manage.py up starts one.{others}"
    free = [worker for worker in fitting if worker.ranks_free]
    if not free:
        return f"{_count(len(fitting))} for {device} jobs, busy now: it starts as soon as one is free."
    if not any(worker.host_ready for worker in free):
        return "A worker has just started and is loading torch."
    return "A worker takes it in a moment."


def _count(workers: int) -> str:
    return "1 worker is there" if workers == 1 else f"{workers} workers are there"
