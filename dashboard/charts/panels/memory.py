"""A rank's memory: what each of its kinds is. The figure itself is a chart (dashboard.charts.memory)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.charts.panels.words import words
from dashboard.runs.models import Run
from trainer.memory import predicted
from trainer.trace.figures import MEMORY_DEFINITIONS


def panel(run: Run, ask: Mapping[str, str]) -> dict[str, Any]:
    return {
        "definitions": words(MEMORY_DEFINITIONS.values()),
        "is_predicted": bool(predicted(run.spec)),
    }
