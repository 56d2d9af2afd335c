"""Runs a job as real ranks and has its steps explained, from figures as the recorder makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dashboard.charts.explain import explanation
from dashboard.runs.intake import as_value, checked, with_changes
from tests.ranks.launch import run
from trainer.spec import JobSpec
from trainer.trace.frame import decode
from trainer.trace.sinks import read_frames
from trainer.trace.step_figures import StepFigures


def measured(spec: JobSpec, folder: Path) -> dict[str, Any]:
    """The explanation of the run, with `stolen` and `realtime` as `tests.ranks.launch` has them."""
    ran = run(spec, folder).check()
    figures = StepFigures(spec.ranks)
    for rank in range(spec.ranks):
        for data, _ in read_frames(folder / "frames" / f"rank-{rank}.frames"):
            figures.add(decode(data))
    return explanation(spec, figures.ready(all_ended=True)) | {"stolen": ran.stolen, "realtime": ran.realtime}


def changed(spec: JobSpec, sets: dict[str, str]) -> JobSpec:
    """The job that the launch form makes of an address."""
    return checked(with_changes(spec.model_dump(), {path: as_value(text) for path, text in sets.items()}))
