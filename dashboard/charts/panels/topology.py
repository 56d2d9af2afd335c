"""Where ranks are, what lies between them, and which way a group's ring or tree goes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from dashboard.charts.panels.collectives import groups_named
from dashboard.charts.panels.words import words
from dashboard.runs.models import Run
from trainer.collectives.plans import plan_of
from trainer.emulate.link_classes import CLASSES
from trainer.grid import AXES, MIRROR, Grid
from trainer.placement import Placement, slow_axes
from trainer.spec import JobSpec
from trainer.trace.network_figures import TOPOLOGY_DEFINITIONS

SHAPES = ("ring", "tree")


def panel(run: Run, ask: Mapping[str, str]) -> dict[str, Any]:
    """Server and rack of every rank. With `group`, the groups along those axes and the pairs of places that talk in their
    ring and in their tree."""
    spec = run.spec
    if "group" in ask:
        groups = groups_named(spec, ask["group"])
        return {"groups": groups, "pairs": {shape: _pairs(shape, len(groups[0])) for shape in SHAPES}}
    placement = Placement.of(spec.grid, spec.placement)
    return {
        "definitions": words(TOPOLOGY_DEFINITIONS.values()),
        "servers": placement.servers,
        "racks": placement.racks,
        "is_emulated": spec.links.kind == "modelled",
        "slow_down": spec.links.slow_down,
        "size_factor": spec.links.size_factor,
        "links": _links(spec),
        "groups": _names(spec),
        "warnings": slow_axes(spec),
    }


def _links(spec: JobSpec) -> list[dict[str, Any]]:
    """The class by distance, as its maker counts it."""
    links = spec.links
    by_distance = (("server", "within a server", links.in_server), ("rack", "within a rack", links.in_rack),
                   ("cluster", "between racks", links.between_racks))
    return [{"distance": distance, "words": said, "class": CLASSES[key].word, "bytes_per_second": CLASSES[key].bytes_per_second,
             "latency_seconds": CLASSES[key].latency_seconds} for distance, said, key in by_distance]


def _names(spec: JobSpec) -> list[str]:
    """Of all sets of axes that more than one rank is on, a whole pipeline's mirrored places among them."""
    grid = Grid.of(spec.grid)
    used = [axis for axis in AXES if grid.size(axis) > 1] + [MIRROR] * (spec.ways == 2)
    sets = (axes for count in range(1, len(used) + 1) for axes in combinations(used, count))
    return ["×".join(axes) for axes in sets if not {"pp", MIRROR} <= set(axes)]


def _pairs(shape: str, ranks: int) -> list[list[int]]:
    """Places that send to each other, by the algorithm's barrier: it goes the whole way and carries one chunk."""
    moves = {tuple(sorted((move.source, move.target))) for step in plan_of("barrier", shape, ranks).steps for move in step}
    return [list(pair) for pair in sorted(moves)]
