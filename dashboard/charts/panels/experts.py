"""What a job's mixtures of experts chose in its latest steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from dashboard.charts.expert_rows import recent
from dashboard.charts.panels.words import words
from dashboard.runs.models import Run
from trainer.spec import Moe
from trainer.trace.figures import EXPERT_DEFINITIONS
from trainer.trace.network_figures import BALANCE_DEFINITIONS


def panel(run: Run, ask: Mapping[str, str]) -> dict[str, Any]:
    """Of each layer: by step, each expert's load and drops in tokens, and the balancing penalty; None where nothing is known."""
    model = cast(Moe, run.spec.model)
    found = recent(run)
    steps = sorted({step for _, step in found})
    layers = sorted({name.split("/")[1] for name, _ in found}, key=int)

    def series(kind: str, layer: str) -> list[list[float | None]]:
        return [[found.get((f"{kind}/{layer}/{expert}", step)) for expert in range(model.experts)] for step in steps]

    shown = [BALANCE_DEFINITIONS[key] for key in ("expert_imbalance", "expert_drop_share")]
    return {
        "definitions": words([*EXPERT_DEFINITIONS.values(), *shown]),
        "experts": model.experts,
        "steps": steps,
        "layers": [{
            "layer": int(layer), "load": series("expert_load", layer), "dropped": series("expert_dropped", layer),
            "penalty": [found.get((f"expert_penalty/{layer}", step)) for step in steps],
        } for layer in layers],
    }
