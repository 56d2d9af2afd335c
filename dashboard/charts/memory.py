"""A rank's memory over its latest steps: what is alive, kind on kind, under what formulas say it may be at most."""

from __future__ import annotations

from typing import Any

import numpy as np

from dashboard.charts.chart import Chart, layout
from dashboard.charts.decimate import indices
from dashboard.charts.memory_rows import MemoryRow
from dashboard.runs.words import size
from trainer.emulate.devices import card_bytes
from trainer.grid import Grid
from trainer.memory import predicted
from trainer.spec import JobSpec

# From the ground up: what stays, then what comes and goes. The page's legend names the same colours.
KINDS = {
    "weights": "--kind-backward-weight",
    "optimizer": "--kind-optimizer",
    "buffers": "--kind-receive",
    "gradients": "--kind-backward",
    "activations": "--kind-forward",
}
CARD_DRAWN = 0.1  # of the card: what holds less is drawn without its size
UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))


def chart(spec: JobSpec, rank: int, rows: list[MemoryRow]) -> Chart:
    """`rows` are the rank's, in the order of time."""
    most = _predicted(spec, rank)
    times_ns, bytes_of = _together([row for row in rows if row.kind in KINDS])
    total = np.sum(list(bytes_of.values()), axis=0)
    highest = max(float(total.max()) if len(total) else 0.0, most or 0)
    scale, unit = next((size, name) for size, name in UNITS if highest >= size or size == 1)
    kept = indices(total)
    milliseconds = (times_ns[kept] - times_ns[0]) / 1e6 if len(kept) else times_ns
    traces = [_wall(kind, milliseconds, values[kept] / scale, unit) for kind, values in bytes_of.items()]
    end_ms = float(milliseconds[-1]) if len(kept) else 1.0
    if most is not None:
        traces.append(_level(end_ms, most / scale, unit, "predicted at most", "--muted"))
    card = card_bytes(spec)
    if card is not None and CARD_DRAWN * card <= highest:  # else what is held would be a line on the ground
        traces.append(_level(end_ms, card / scale, unit, "the card's size", "--bad"))
        highest = max(highest, card)
    axis = {"title": {"text": f"Memory, {unit}", "standoff": 8}, "range": [0, highest / scale * 1.1 or 1], "nticks": 5}
    looks = layout(f"Memory of rank {rank}, latest steps", axis, spec.steps) | {
        "xaxis": {"title": {"text": "Time, ms", "standoff": 6}, "range": [0, end_ms or 1.0], "zeroline": False},
    }
    return Chart({"data": traces, "layout": looks}, _words(rank, bytes_of, total, most, scale, unit) + _card_words(card))


def _together(rows: list[MemoryRow]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """All kinds at the moments when any changed; each keeps its value until it changes."""
    times_ns = np.unique(np.array([row.time_ns for row in rows], float))
    together = {}
    for kind in KINDS:
        own = [row for row in rows if row.kind == kind]
        at = np.searchsorted(np.array([row.time_ns for row in own], float), times_ns, "right") - 1
        values = np.array([row.bytes for row in own] or [0.0])
        together[kind] = values[np.maximum(at, 0)]  # before it was first said, as it was then
    return times_ns, together


def _wall(kind: str, milliseconds: np.ndarray, values: np.ndarray, unit: str) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "name": kind, "stackgroup": "alive",
        "x": milliseconds.tolist(), "y": values.tolist(),
        "line": {"width": 1, "shape": "hv"}, "meta": KINDS[kind],
        "hovertemplate": f"{kind} %{{y:.4~g}} {unit}<extra></extra>",
    }


def _level(end_ms: float, value: float, unit: str, name: str, colour: str) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": [0.0, end_ms], "y": [value, value],
        "line": {"width": 1.4, "dash": "dash"}, "meta": colour,
        "hovertemplate": f"{name} {value:.4g} {unit}<extra></extra>",
    }


def _predicted(spec: JobSpec, rank: int) -> int | None:
    by_place = predicted(spec)
    return by_place[Grid.of(spec.grid).address(rank).pp].total if by_place else None


def _card_words(card: float | None) -> str:
    return "" if card is None else f" The card has {size(card)}."


def _words(rank: int, bytes_of: dict[str, np.ndarray], total: np.ndarray, most: int | None, scale: float, unit: str) -> str:
    expected = "" if most is None else f" Predicted at most: {most / scale:.4g} {unit}."
    if not len(total):
        return f"The memory of rank {rank}. None is known yet.{expected}"
    peaks = ", ".join(f"{kind} {values.max() / scale:.4g}" for kind, values in bytes_of.items())
    return f"The memory of rank {rank} in its latest steps, at most {total.max() / scale:.4g} {unit}; {peaks}.{expected}"
