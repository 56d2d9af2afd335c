"""What the figures beside the loss are. The figures themselves are charts (dashboard.charts.learning)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.charts.panels.words import words
from dashboard.runs.models import Run
from trainer.trace.figures import STEP_DEFINITIONS
from trainer.trace.network_figures import BALANCE_DEFINITIONS


def panel(run: Run, ask: Mapping[str, str]) -> dict[str, Any]:
    shown = [STEP_DEFINITIONS[key] for key in ("loss", "learning_rate", "grad_norm")]
    return {"definitions": words([*shown, BALANCE_DEFINITIONS["tokens_seen"]])}
