"""What a run's mixtures of experts said lately."""

from __future__ import annotations

from dashboard.charts.recent import recent_frames
from dashboard.runs.models import Run
from trainer.grid import Grid, speaks_for_its_stages
from trainer.spec import JobSpec

STEPS = 64  # shown
PREFIX = "expert_"


def recent(run: Run) -> dict[tuple[str, int], float]:
    """The counters of the latest steps, by name and step."""
    found: dict[tuple[str, int], float] = {}
    for frame in recent_frames(run, _speakers(run.spec)):
        columns = (frame.counters[name].tolist() for name in ("name", "value", "step"))
        for name, value, step in zip(*columns, strict=True):
            if (text := frame.strings[name]).startswith(PREFIX):
                found[text, step] = value
    last = max((step for _, step in found), default=0)
    return {key: value for key, value in found.items() if key[1] > last - STEPS}


def _speakers(spec: JobSpec) -> frozenset[int]:
    grid = Grid.of(spec.grid)
    return frozenset(rank for rank in range(grid.ranks) if speaks_for_its_stages(spec, grid.address(rank)))
