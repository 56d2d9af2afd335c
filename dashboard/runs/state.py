"""A run as the page, the socket and the API show it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from dashboard.runs.models import Run
from dashboard.runs.services import place_in_queue
from dashboard.runs.waiting import waits_for
from trainer.grid import Grid
from trainer.placement import Placement
from trainer.schedules import stages_of
from trainer.schedules.theory import bubble_formula, bubble_share
from trainer.spec import JobSpec


def as_dict(run: Run, place: int | None = None) -> dict[str, Any]:
    """Everything about `run` but what it recorded; times in milliseconds since 1970.

    `place` in the queue, where it is known already, saves the one query that this may need.
    """
    spec = run.spec
    return {
        "id": run.id,
        "name": run.name,
        "state": run.state,
        "reason": run.reason,
        "failure": run.failure,
        "has_ended": run.has_ended,
        "place_in_queue": place_in_queue(run) if place is None else place,
        "steps": spec.steps,
        "steps_done": run.steps_done,
        "ranks": spec.ranks,
        "created": unix_ms(run.created_at),
        "started": unix_ms(run.started_at),
        "ended": unix_ms(run.ended_at),
        "sealed": unix_ms(run.sealed_at),
        "worker": run.worker,
        "realtime": run.realtime,
        "figures": run.figures,
        "spec": spec.model_dump(mode="json"),  # whole, also where the job was stored before a field came to be
        "grid": _addresses(spec),
        "stages": stages_of(spec),  # by place in the pipeline
        "places": _places(spec),
        "theory": {"bubble_share": bubble_share(spec), "formula": bubble_formula(spec)},
    }


def for_page(run: Run) -> dict[str, Any]:
    """The same for the run's own page: what it waits for while it is queued, and how often its comments changed."""
    return as_dict(run) | {"waits_for": waits_for(run), "comments_revision": run.comments_revision}


def _addresses(spec: JobSpec) -> list[dict[str, int]]:
    grid = Grid.of(spec.grid)
    return [asdict(grid.address(rank)) for rank in range(grid.ranks)]


def _places(spec: JobSpec) -> dict[str, list[int]]:
    """The server and the rack of every rank, where links between them are modelled; else nothing says where ranks are."""
    if spec.links.kind == "real":
        return {}
    placement = Placement.of(spec.grid, spec.placement)
    return {"server": list(placement.servers), "rack": list(placement.racks)}


def unix_ms(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)
