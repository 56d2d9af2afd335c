"""What the page needs to tell of collectives: groups with their links' ceiling, and plans with every rank's state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import Http404

from dashboard.charts.panels.words import words
from dashboard.runs.models import Run
from trainer.collectives.cost import bus_share
from trainer.collectives.plans import ALGORITHMS, plan_of
from trainer.grid import GROUP_AXES, Grid
from trainer.placement import Placement, link_as_counted
from trainer.spec import JobSpec
from trainer.trace.network_figures import COLLECTIVE_DEFINITIONS

MOST_GROUPS = 32  # as many as axes can be put together
MOST_PLAYED = {"all_to_all": 8}  # ranks; its chunks are the ranks' square
MOST_PLAYED_ELSE = 16
PLAYED = [collective for collective in ALGORITHMS if collective != "barrier"]
TIMED = [*PLAYED, "gather", "scatter"]


def panel(run: Run, ask: Mapping[str, str]) -> dict[str, Any]:
    """Without `collective`: what stands beside the measured figures, of the groups named in `groups`, with commas between.
    With it: the plan of `algorithm` among `ranks`."""
    if "collective" in ask:
        return played(ask["collective"], ask.get("algorithm", ""), ask.get("ranks", ""))
    names = [name for name in ask.get("groups", "").split(",") if name][:MOST_GROUPS]
    return {
        "definitions": words(COLLECTIVE_DEFINITIONS.values()),
        "groups": {name: _group(run.spec, name) for name in names},
        "is_emulated": run.spec.links.kind == "modelled",
        "slow_down": run.spec.links.slow_down,
        "algorithms": {collective: list(ALGORITHMS[collective]) for collective in PLAYED},
        "chosen": run.spec.collectives.model_dump(),
    }


def _group(spec: JobSpec, name: str) -> dict[str, Any]:
    groups = groups_named(spec, name)
    return {
        "ranks": len(groups[0]),
        "members": groups[0],
        "ceiling": _ceiling(spec, groups),
        "bus_share": {collective: bus_share(collective, len(groups[0])) for collective in TIMED},
    }


def groups_named(spec: JobSpec, name: str) -> list[list[int]]:
    """Groups along the axes that the name says; one that is not named by axes holds all ranks."""
    axes = name.split("×")
    grid = Grid.of(spec.grid)
    return grid.groups(*axes) if set(axes) <= GROUP_AXES else [list(range(grid.ranks))]


def _ceiling(spec: JobSpec, groups: Sequence[Sequence[int]]) -> dict[str, Any] | None:
    """The slowest link between neighbours on the ring of any group; None where links are real."""
    if spec.links.kind == "real" or len(groups[0]) == 1:
        return None
    placement = Placement.of(spec.grid, spec.placement)
    links = {link_as_counted(spec, placement.distance(one, other))
             for group in groups for one, other in zip(group, [*group[1:], group[0]], strict=True)}
    slowest = min(links, key=lambda link: link.bytes_per_second)
    return {"word": slowest.word, "bytes_per_second": slowest.bytes_per_second}


def played(collective: str, algorithm: str, ranks: str) -> dict[str, Any]:
    """Every step's moves, and after each (and before the first) whose contributions each rank has in each chunk: the bit
    of a rank is set if its contribution is in, 0 is nothing at all."""
    if collective not in PLAYED or algorithm not in ALGORITHMS[collective]:
        raise Http404(f"There is no {algorithm} for {collective}; collectives are {', '.join(PLAYED)}.")
    most = MOST_PLAYED.get(collective, MOST_PLAYED_ELSE)
    if not ranks.isdecimal() or not 2 <= int(ranks) <= most:
        raise Http404(f"{ranks or 'Nothing'} was given as ranks; 2 to {most} would do for {collective}.")
    plan = plan_of(collective, algorithm, int(ranks))
    states = [plan.start(), *plan.states(plan.start())]
    return {
        "collective": collective, "algorithm": algorithm, "ranks": plan.ranks, "chunks": plan.chunks,
        "steps": [[[move.source, move.target, list(move.chunks), move.reduce] for move in moves] for moves in plan.steps],
        "states": [[[sum(1 << rank for rank in held.get(chunk, ())) for chunk in range(plan.chunks)] for held in state]
                   for state in states],
    }
