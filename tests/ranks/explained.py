"""Runs a job as real ranks and has its steps explained, from figures as the recorder makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dashboard.charts.explain import explanation
from dashboard.charts.explain.memory import watched_ranks
from dashboard.runs.intake import as_value, checked, with_changes
from tests.ranks.launch import run
from trainer.spec import JobSpec
from trainer.trace.frame import decode
from trainer.trace.sinks import read_frames
from trainer.trace.step_figures import StepFigures


def measured(spec: JobSpec, folder: Path) -> dict[str, Any]:
    """The explanation of the run, with `stolen` and `realtime` as `tests.ranks.launch` has them, and the bytes that the fullest
    of its ranks held where the job names a card."""
    ran = run(spec, folder).check()
    figures = StepFigures(spec.ranks)
    for rank in range(spec.ranks):
        for data, _ in read_frames(folder / "frames" / f"rank-{rank}.frames"):
            figures.add(decode(data))
    peaks: dict[int, dict[str, float]] = {}
    for (rank, kind), told in ran.memory.items():
        if rank in watched_ranks(spec):
            peaks.setdefault(rank, {})[kind] = max(value for _, value in told)
    held = max((sum(kinds.values()) for kinds in peaks.values()), default=0.0)
    return explanation(spec, figures.ready(all_ended=True), peaks) | {
        "stolen": ran.stolen, "realtime": ran.realtime, "held": held}


def changed(spec: JobSpec, sets: dict[str, str]) -> JobSpec:
    """The job that the launch form makes of an address."""
    return checked(with_changes(spec.model_dump(), {path: as_value(text) for path, text in sets.items()}))
