"""What a job took before: a plan has in it nothing of what the machine itself does, and at the real pace there is none."""

from __future__ import annotations

from typing import Any

from dashboard.runs.access import visible_runs
from dashboard.runs.models import Run, State
from trainer.spec import JobSpec

MOST_LOOKED_AT = 500  # the latest runs that finished, anybody's: a keystroke in the form takes no longer on a full server
_WHATEVER = ("name", "steps", "seed")  # a step takes as long


def last_run_of(spec: JobSpec, user: Any) -> Run | None:
    """The latest run of the same job that finished, of those that the user may see."""
    wanted = _job(spec.model_dump(mode="json"))
    latest = Run.objects.filter(state=State.FINISHED).order_by("-created_at").values("pk")[:MOST_LOOKED_AT]
    alike = visible_runs(user).filter(pk__in=latest, step_seconds__isnull=False, model=spec.model.name,
                                      schedule=spec.schedule.name, **spec.grid.model_dump())
    found = alike.only("id", "spec_json", "step_seconds").order_by("-created_at").iterator()
    return next((run for run in found if _job(run.spec_json) == wanted), None)


def _job(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in _WHATEVER}
