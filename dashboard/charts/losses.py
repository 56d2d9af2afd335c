"""The losses of several runs over the steps, together."""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.charts.chart import Chart, StepRow, axis_steps, layout, line, series
from dashboard.runs.models import Run

COLOURS = ("--accent", "--kind-backward", "--kind-send", "--kind-all-reduce")
DASHES = ("solid", "dash", "dot", "dashdot")  # colour never tells alone


def chart(runs: Sequence[Run], rows_of: Sequence[list[StepRow]]) -> Chart:
    data, words, shown = [], [], 0
    for run, rows, colour, dash in zip(runs, rows_of, COLOURS, DASHES, strict=False):
        steps, losses = series(rows, "loss")
        shown = max(shown, axis_steps(run.steps, steps))
        name = f"{run.name[:40]} ({run.pk})".replace("<", "‹").replace(">", "›")  # Plotly would read markup
        trace = line(name, steps, losses, colour, "%{y:.4f} nats") | {"mode": "lines", "line": {"width": 1.8, "dash": dash}}
        trace["hovertemplate"] = f"{name}, {trace['hovertemplate']}"
        data.append(trace)
        words.append(f"{run.name}: {losses[-1]:.4f} at step {steps[-1]}" if len(steps) else f"{run.name}: none is known yet")
    axis = {"title": {"text": "Cross-entropy, nats", "standoff": 8}, "zeroline": False, "nticks": 5}
    figure = {
        "data": data,
        "layout": layout("Loss, mean over the batch", axis, shown)
        | {"showlegend": True, "legend": {"orientation": "h", "y": -0.22}},
    }
    return Chart(figure, "The losses of the runs, as cross-entropy in nats. " + "; ".join(words) + ".")
