"""Beside the loss: the learning rate, the gradient's norm, and how much was learned from, over the steps."""

from __future__ import annotations

import numpy as np

from dashboard.charts.chart import Chart, StepRow, axis_steps, layout, line, series
from trainer.spec import Gpt, JobSpec


def learning_rate(spec: JobSpec, rows: list[StepRow]) -> Chart:
    return _chart(spec, "Learning rate", *series(rows, "learning_rate"), "--kind-optimizer", "%{y:.3g}", ".3g")


def grad_norm(spec: JobSpec, rows: list[StepRow]) -> Chart:
    why_not = "Known where gradients are clipped:<br>each rank holds a part of the gradient alone" if rows else ""
    known = series(rows, "grad_norm")
    return _chart(spec, "Gradient norm, before clipping", *known, "--kind-backward", "%{y:.4g}", ".4g", why_not)


def tokens(spec: JobSpec, rows: list[StepRow]) -> Chart:
    """Of a job that learns from digits: samples."""
    steps, samples = series(rows, "samples")
    is_text = isinstance(spec.model, Gpt)
    seen = np.cumsum(samples) * (spec.model.context if isinstance(spec.model, Gpt) else 1)
    title = "Tokens learned from" if is_text else "Samples learned from"
    return _chart(spec, title, steps, seen, "--kind-forward", "%{y:,.0f}", ",.0f")


def _chart(spec: JobSpec, title: str, steps: np.ndarray, values: np.ndarray, colour: str, hover: str, form: str,
           why_not: str = "") -> Chart:
    """`why_not` stands in the figure as long as no value is known."""
    axis = {"zeroline": False, "nticks": 5, "rangemode": "tozero", "showticklabels": bool(len(steps))}
    around = layout(title, axis, axis_steps(spec.steps, steps))
    figure = {"data": [line(title, steps, values, colour, hover)], "layout": around}
    if not len(steps):
        middle = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
        around["annotations"] = [{"text": why_not, "showarrow": False, **middle}]
        return Chart(figure, f"{title}: {why_not.replace('<br>', ' ') or 'none is known yet'}.")
    return Chart(figure, f"{title}: {values[0]:{form}} at step {steps[0]}, {values[-1]:{form}} at step {steps[-1]}.")
