"""What lateness means. The steps' rows, which the page has, say the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.charts.panels.words import words
from dashboard.runs.models import Run
from trainer.trace.figures import RUN_DEFINITIONS
from trainer.trace.network_figures import STRAGGLER_DEFINITIONS


def panel(run: Run, ask: Mapping[str, str]) -> dict[str, Any]:
    return {"definitions": words([*STRAGGLER_DEFINITIONS.values(), RUN_DEFINITIONS["slow_ranks"]])}
