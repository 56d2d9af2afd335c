"""What costs most in a step, and what to try."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from time import monotonic
from typing import Any

from dashboard.charts.explain import explanation
from dashboard.charts.explain.memory import watched_ranks
from dashboard.charts.memory_rows import peaks
from dashboard.charts.rows import recent_rows
from dashboard.runs.models import Run

SHARED_SECONDS = 4  # every page of a run shows it beside the timeline: those that ask together share an answer


def panel(run: Run, ask: Mapping[str, str]) -> dict[str, Any]:
    return _explained(run, run.state, run.steps_done, int(monotonic() / SHARED_SECONDS))


@lru_cache(64)
def _explained(run: Run, state: str, steps_done: int, slot: int) -> dict[str, Any]:
    ranks = watched_ranks(run.spec)
    return explanation(run.spec, recent_rows(run), peaks(run, ranks) if ranks else {})
