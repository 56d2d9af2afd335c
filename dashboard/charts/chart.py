"""What the charts have in common: a figure is a plain dictionary as Plotly takes it, without colours.

The page lays its theme's colours under the figure (static/js/views/chart.js): a trace says by `meta`
which of the page's CSS variables it is drawn in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashboard.charts.decimate import indices

Figure = dict[str, Any]
StepRow = dict[str, Any]

FEW_POINTS = 60  # up to here each step gets its dot
FEW_STEPS = 8  # up to here each step gets its mark on the axis
LEAST_AXIS_STEPS = 64  # of a job of more steps


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


def axis_steps(of_job: int, known: Sequence[int] | np.ndarray) -> int:
    """How many steps the axis shows: all of a short job, so that it stands still. Of a long one twice as many
    whenever what is known reaches its end, for the first hundred of 50,000 would be a line straight up."""
    done = max(known, default=0) + 1
    return min(of_job, max(LEAST_AXIS_STEPS, 1 << int(done - 1).bit_length()))


def layout(title: str, value_axis: dict[str, Any], steps: int) -> dict[str, Any]:
    """`steps`: how many the axis shows."""
    return {
        "title": {"text": title, "x": 0, "xanchor": "left", "xref": "paper", "font": {"size": 13}},
        "xaxis": {
            "title": {"text": "Step", "standoff": 6},
            "range": [-0.5, max(steps - 0.5, 0.5)],
            "tickformat": "d",
            "zeroline": False,
            **({"dtick": 1} if steps <= FEW_STEPS else {}),  # else half steps get marks, rounded to a step that is not there
        },
        "yaxis": value_axis,
        "showlegend": False,
        "hovermode": "closest",
        "margin": {"l": 52, "r": 12, "t": 34, "b": 40},
    }
