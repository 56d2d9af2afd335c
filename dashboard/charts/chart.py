"""What the charts have in common: a figure is a plain dictionary as Plotly takes it, without colours.

The page lays its theme's colours under the figure (static/js/views/chart.js): a trace says by `meta`
which of the page's CSS variables it is drawn in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dashboard.charts.decimate import indices

Figure = dict[str, Any]
StepRow = dict[str, Any]

FEW_POINTS = 60  # up to here each step gets its dot


@dataclass(frozen=True)
class Chart:
    """A figure, and the same in words for those who do not see it."""

    figure: Figure
    text: str

    def as_dict(self) -> dict[str, Any]:
        return {"figure": self.figure, "text": self.text}


def series(rows: list[StepRow], key: str) -> tuple[np.ndarray, np.ndarray]:
    """Steps and values where the value is known, in the order of the steps."""
    known = sorted((row["step"], row[key]) for row in rows if row.get(key) is not None)
    return np.array([step for step, _ in known], int), np.array([value for _, value in known], float)


def line(name: str, steps: np.ndarray, values: np.ndarray, colour: str, hover: str) -> dict[str, Any]:
    """A trace of measured values, decimated. `colour` names a CSS variable; `hover` formats a value."""
    kept = indices(values)
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(values) <= FEW_POINTS else "lines",
        "name": name,
        "x": steps[kept].tolist(),
        "y": values[kept].tolist(),
        "line": {"width": 1.8},
        "marker": {"size": 4},
        "meta": colour,
        "hovertemplate": f"step %{{x}}: {hover}<extra></extra>",
    }


def layout(title: str, value_axis: dict[str, Any], steps: int) -> dict[str, Any]:
    """`steps`: how many the run will have, so that the axis stands still while it grows."""
    return {
        "title": {"text": title, "x": 0, "xanchor": "left", "xref": "paper", "font": {"size": 13}},
        "xaxis": {
            "title": {"text": "Step", "standoff": 6},
            "range": [-0.5, max(steps - 0.5, 0.5)],
            "tickformat": "d",
            "zeroline": False,
        },
        "yaxis": value_axis,
        "showlegend": False,
        "hovermode": "closest",
        "margin": {"l": 52, "r": 12, "t": 34, "b": 40},
    }
