"""The bubble of each step, measured, beside what the schedule's formula says."""

from __future__ import annotations

from typing import Any

import numpy as np

from dashboard.charts.chart import Chart, StepRow, axis_steps, layout, line, series
from trainer.schedules.theory import bubble_formula, bubble_share
from trainer.spec import JobSpec

LONGEST_LABEL = 34  # letters that fit beside the axis


def chart(spec: JobSpec, rows: list[StepRow]) -> Chart:
    """Share of the whole: of all ranks' time from the step's first to its last action, what they were idle."""
    steps, shares = series(rows, "bubble_share")
    theory, expected, shown = bubble_share(spec), _expected(spec), axis_steps(spec.steps, steps)
    highest = max(theory, float(shares.max()) if len(shares) else 0.0)
    axis = {
        "title": {"text": "Idle share of the step", "standoff": 8},
        "tickformat": ".0%", "range": [0, min(1.0, max(0.1, highest * 1.25))], "zeroline": False, "nticks": 5,
    }
    figure = {
        "data": [
            line("measured", steps, shares, "--kind-backward", "%{y:.1%} idle"),
            _theory(shown, theory, expected),
        ],
        "layout": layout("Bubble, share of the whole", axis, shown) | {"annotations": [_formula(theory, expected)]},
    }
    if not len(steps):
        return Chart(figure, f"The bubble of each step, as a share of the whole. None is known yet. In theory: {expected}.")
    return Chart(
        figure,
        f"The bubble of each step, as a share of the whole: {shares[-1]:.1%} at step {steps[-1]}, "
        f"median {np.median(shares):.1%}. In theory: {expected}.",
    )


def _expected(spec: JobSpec) -> str:
    formula = bubble_formula(spec)
    return formula if spec.grid.pp == 1 else f"{formula} = {bubble_share(spec):.1%}"


def _theory(steps: int, theory: float, expected: str) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "name": "theory",
        "x": [-0.5, max(steps - 0.5, 0.5)], "y": [theory, theory],
        "line": {"width": 1.4, "dash": "dash"}, "meta": "--muted",
        "hovertemplate": f"theory: {expected}<extra></extra>",
    }


def _formula(theory: float, expected: str) -> dict[str, Any]:
    """At the dashed line's right end: below it, since what is measured lies above; above it where it lies on the axis."""
    words = expected if len(expected) <= LONGEST_LABEL else f"{theory:.1%}"  # the formula stands above the timeline as well
    return {
        "text": f"theory: {words}", "x": 1, "xref": "paper", "xanchor": "right",
        "y": theory, "yanchor": "top" if theory else "bottom", "showarrow": False, "font": {"size": 11},
    }
