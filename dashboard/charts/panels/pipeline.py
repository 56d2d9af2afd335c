"""The schedule as a grid of slots: what it would be, what a rank holds, and what another would change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.charts.alternatives import alternatives, simulated
from dashboard.runs.models import Run
from trainer.schedules import schedule_of, stages_of
from trainer.schedules.actions import Do, Schedule
from trainer.schedules.family import SCHEDULES
from trainer.schedules.simulate import Simulation, simulate
from trainer.spec import JobSpec

MOST_DRAWN = 4096  # actions; more are too thin to be seen
ONE_SLOT_EACH = dict.fromkeys(Do, 1.0)


def panel(run: Run, ask: Mapping[str, str]) -> dict[str, Any]:
    """Times in ms. `slots` counts as textbooks do: every action takes one slot, and a device has room for a forward and a
    backward side by side."""
    spec = run.spec
    schedule = schedule_of(spec)
    is_drawn = sum(map(len, schedule)) <= MOST_DRAWN
    return {
        "stages": stages_of(spec),
        "ideal": _drawn(simulated(spec, schedule)) if is_drawn else None,
        "slots": _in_slots(schedule) if is_drawn else None,
        "held": _held(spec, schedule),
        "alternatives": alternatives(spec),
    }


def _drawn(step: Simulation) -> dict[str, Any]:
    """A lane for each place in the pipeline: [letter, stage, micro-batch, start, end] of each action."""
    lanes: list[list[list[Any]]] = [[] for _ in range(step.ranks)]
    for timed in step.timed:
        action = timed.action
        lanes[timed.rank].append([str(action)[0], action.stage, action.micro_batch, timed.start, timed.end])
    return {"lanes": lanes, "length": step.makespan, "bubble_share": step.bubble_share}


def _in_slots(schedule: Schedule) -> dict[str, Any]:
    step = simulate(schedule, ONE_SLOT_EACH, side_by_side=True)
    slots = round(step.makespan)
    active = [len({timed.rank for timed in step.timed if timed.start == slot}) / len(schedule) for slot in range(slots)]
    return _drawn(step) | {"active_share": active}


def _held(spec: JobSpec, schedule: Schedule) -> list[dict[str, Any]]:
    """For each place: activations of how many micro-batches, each in one stage, it holds at most."""
    given = spec.schedule
    held = simulated(spec, schedule).peak_held
    bound = SCHEDULES[given.name].held if given.name in SCHEDULES else None
    return [
        {"peak": peak, "bound": bound(place, spec.grid.pp, given.micro_batches, given.chunks) if bound else None}
        for place, peak in enumerate(held)
    ]
