"""What costs most in a step, and what to try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.charts.explain import explanation
from dashboard.charts.explain.memory import watched_ranks
from dashboard.charts.memory_rows import peaks
from dashboard.charts.rows import recent_rows
from dashboard.runs.models import Run


def panel(run: Run, ask: Mapping[str, str]) -> dict[str, Any]:
    ranks = watched_ranks(run.spec)
    return explanation(run.spec, recent_rows(run), peaks(run, ranks) if ranks else {})
