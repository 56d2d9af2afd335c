"""The views beside a run's timeline, a file each: what each tells, whether a job has it, and its data.

A panel's data is a plain dictionary of bounded size; its module in static/js/views/panels draws it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.charts.panels import collectives, experts, explain, learning, memory, pipeline, stragglers, topology
from dashboard.runs.models import Run
from trainer.spec import JobSpec

Make = Callable[[Run, Mapping[str, str]], dict[str, Any]]


@dataclass(frozen=True)
class Panel:
    """`make` takes what the page asks for, as text it has to check, and is None where the page has all it needs."""

    key: str
    title: str
    tells: str
    make: Make | None = None
    fits: Callable[[JobSpec], bool] = lambda spec: True


PANELS = (
    Panel("pipeline", "Pipeline",
          "The order of one step's work: as the schedule has it, as it was measured, and what another order would take.",
          pipeline.panel, lambda spec: spec.grid.pp > 1),
    Panel("explain", "Explain",
          "What a step's time goes into, what costs most, and what to try, with what the simulator expects of it.",
          explain.panel),
    Panel("collectives", "Collectives",
          "Per group and operation: how much, how fast beside what the links could, and who was waited for.",
          collectives.panel, lambda spec: spec.ranks > 1),
    Panel("topology", "Topology", "Where each rank is, what lies between ranks, and what flows over it in a step.",
          topology.panel, lambda spec: spec.ranks > 1),
    Panel("stragglers", "Stragglers",
          "How much later than the first each rank comes to its collectives, by step, and whether it is always the same.",
          stragglers.panel, lambda spec: spec.ranks > 1),
    Panel("experts", "Experts", "How evenly the routers share out tokens among experts, and what found no room.",
          experts.panel, lambda spec: spec.model.name == "moe"),
    Panel("memory", "Memory",
          "What each rank has in memory over its latest steps, by what it is for, beside the most that formulas say.",
          memory.panel),
    Panel("learning", "Learning", "The loss beside what drives it: learning rate, gradient and how much was learned from.",
          learning.panel),
    Panel("comments", "Comments", "What people say of this run, or of a spot in it: a range, a span, a rank."),
    Panel("log", "Log", "What a rank printed, as it prints it."),
)


def panels_of(spec: JobSpec) -> list[Panel]:
    return [panel for panel in PANELS if panel.fits(spec)]


def panel(spec: JobSpec, key: str) -> Panel | None:
    """None where the job has no such panel."""
    return next((one for one in panels_of(spec) if one.key == key), None)
