"""Waiting for a run at the command line: its progress, and at last what it came to."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dashboard.runs import services
from dashboard.runs.models import Run, State
from trainer.schedules.theory import bubble_share

ASK_EVERY_SECONDS = 0.25
SEAL_PATIENCE_SECONDS = 60.0  # after a run's end, for the recorder to have all of it on disk
EXIT_STATUS: dict[str, int] = {State.FINISHED: 0, State.FAILED: 1, State.LOST: 1, State.STOPPED: 3}


def until_over(run_id: str, say: Callable[[str], None]) -> Run:
    """The run when it has ended and all its figures are there. `say` hears of every change."""
    said, ended_at = "", None
    while True:
        run = Run.objects.get(pk=run_id)
        words = progress(run)
        if words != said:
            say(words)
            said = words
        if run.has_ended:
            ended_at = ended_at or time.monotonic()
            if run.sealed_at or not run.started_at:
                return run
            if time.monotonic() - ended_at > SEAL_PATIENCE_SECONDS:
                say(f"The recorder has not sealed the run in {SEAL_PATIENCE_SECONDS:g} s; its figures are not complete.")
                return run
        time.sleep(ASK_EVERY_SECONDS)


def progress(run: Run) -> str:
    if run.state == State.QUEUED:
        return f"{run.id} queued, place {services.place_in_queue(run)}"
    if run.state == State.STARTING:
        return f"{run.id} starting on {run.worker}"
    steps = f"step {run.steps_done} of {run.spec.steps}"
    if run.has_ended:
        return f"{run.id} {run.state}, {steps}. {run.reason}".rstrip()
    return f"{run.id} {run.state}, {steps}"


def as_result(run: Run, url: str) -> dict[str, Any]:
    """What `--json` prints. Figures that are not known yet are null."""
    spec, figures = run.spec, run.figures
    wall = (run.ended_at - run.started_at).total_seconds() if run.ended_at and run.started_at else None
    return {
        "run": run.id, "url": f"{url}/runs/{run.id}/", "name": run.name,
        "state": run.state, "reason": run.reason, "failure": run.failure,
        "ranks": spec.ranks, "steps": spec.steps, "steps_done": run.steps_done,
        "spans": figures.get("spans"), "dropped_spans": figures.get("dropped_spans"),
        "bubble_share": figures.get("bubble_share"), "bubble_share_ideal": figures.get("bubble_share_ideal"),
        "bubble_share_theory": bubble_share(spec),
        "loss_first": figures.get("loss_first"), "loss_last": figures.get("loss_last"),
        "step_seconds": figures.get("step_seconds"), "step_seconds_theory": figures.get("step_seconds_theory"),
        "realtime": run.realtime, "wall_seconds": wall,
    }
