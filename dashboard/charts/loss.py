"""The loss over the steps."""

from __future__ import annotations

from dashboard.charts.chart import Chart, StepRow, axis_steps, layout, line, series
from trainer.spec import JobSpec


def chart(spec: JobSpec, rows: list[StepRow]) -> Chart:
    steps, losses = series(rows, "loss")
    axis = {"title": {"text": "Cross-entropy, nats", "standoff": 8}, "zeroline": False, "nticks": 5}
    figure = {
        "data": [line("loss", steps, losses, "--accent", "%{y:.4f} nats")],
        "layout": layout("Loss, mean over the batch", axis, axis_steps(spec.steps, steps)),
    }
    if not len(steps):
        return Chart(figure, "The loss of each step. None is known yet.")
    return Chart(
        figure,
        f"The loss of each step, as cross-entropy in nats: {losses[0]:.4f} at step {steps[0]}, "
        f"{losses[-1]:.4f} at step {steps[-1]}, lowest {losses.min():.4f}.",
    )
