"""What a job took before: a plan has in it nothing of what the machine itself does, and at the real pace there is none."""

from __future__ import annotations

from typing import Any

from dashboard.runs.access import visible_runs
from dashboard.runs.models import Run, State
from trainer.spec import JobSpec

MOST_LOOKED_AT = 20  # runs of the same model, schedule and grid, the latest first
_WHATEVER = ("name", "steps", "seed")  # a step takes as long


def last_run_of(spec: JobSpec, user: Any) -> Run | None:
    """The latest run of the same job that finished, of those that the user may see."""
    wanted = _job(spec.model_dump(mode="json"))
    finished = visible_runs(user).filter(state=State.FINISHED, step_seconds__isnull=False)
    alike = finished.filter(model=spec.model.name, schedule=spec.schedule.name, **spec.grid.model_dump())
    latest = alike.only("id", "spec_json", "step_seconds").order_by("-created_at")[:MOST_LOOKED_AT]
    return next((run for run in latest if _job(run.spec_json) == wanted), None)


def _job(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in _WHATEVER}
