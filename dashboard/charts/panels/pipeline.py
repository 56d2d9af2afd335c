"""The schedule as a grid of slots: what it would be, what a rank holds, and what another would change."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dashboard.runs.models import Run
from trainer.emulate.durations import durations_ms
from trainer.misfits import complaints
from trainer.schedules import schedule_of, stages_of
from trainer.schedules.actions import Do, Schedule
from trainer.schedules.cuts import is_even, shares_of
from trainer.schedules.family import SCHEDULES
from trainer.schedules.simulate import Simulation, simulate
from trainer.schedules.theory import bubble_share
from trainer.spec import JobSpec, ScheduleSpec

MOST_DRAWN = 4096  # actions; more are too thin to be seen
MOST_WEIGHED = 1024  # stages × micro-batches of a job whose alternatives are simulated
ONE_SLOT_EACH = dict.fromkeys(Do, 1.0)


def panel(run: Run, ask: Mapping[str, str]) -> dict[str, Any]:
    """Times in ms. `slots` counts as textbooks do: every action takes one slot, and a device has room for a forward and a
    backward side by side."""
    spec = run.spec
    schedule = schedule_of(spec)
    is_drawn = sum(map(len, schedule)) <= MOST_DRAWN
    return {
        "stages": stages_of(spec),
        "ideal": _drawn(_simulated(spec, schedule)) if is_drawn else None,
        "slots": _in_slots(schedule) if is_drawn else None,
        "held": _held(spec, schedule),
        "alternatives": alternatives(spec),
    }


def _drawn(step: Simulation) -> dict[str, Any]:
    """A lane for each place in the pipeline: [letter, stage, micro-batch, start, end] of each action."""
    lanes: list[list[list[Any]]] = [[] for _ in step.peak_held]
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
    held = _simulated(spec, schedule).peak_held
    bound = SCHEDULES[given.name].held if given.name in SCHEDULES else None
    return [
        {"peak": peak, "bound": bound(place, spec.grid.pp, given.micro_batches, given.chunks) if bound else None}
        for place, peak in enumerate(held)
    ]


def _simulated(spec: JobSpec, schedule: Schedule) -> Simulation:
    return simulate(schedule, durations_ms(spec), shares=shares_of(spec))


def alternatives(spec: JobSpec) -> list[dict[str, Any]]:
    """The same work under other schedules and in other numbers of micro-batches; the job itself comes first.

    A micro-batch's time goes with its samples, so half as many micro-batches take twice as long each.
    """
    m = spec.schedule.micro_batches
    if spec.grid.pp == 1 or spec.grid.pp * spec.schedule.chunks * m > MOST_WEIGHED:
        return []
    kept = spec.schedule.model_copy(update={"csv": ""})
    even: dict[str, Any] = {"layers": type(spec.schedule.layers)()}
    wanted = [spec.schedule]
    if not is_even(spec):
        wanted.append(spec.schedule.model_copy(update=even))
    wanted += [spec.schedule.model_copy(update={"micro_batches": other}) for other in (2 * m, 4 * m, m // 2)
               if other and spec.schedule.name != "csv"]
    for name, family in SCHEDULES.items():
        chunks = min(max(spec.schedule.chunks, family.fewest_chunks), family.most_chunks)
        cuts = {} if chunks == spec.schedule.chunks else even
        other = kept.model_copy(update={"name": name, "chunks": chunks, "split_backward": False, **cuts})
        if other != spec.schedule:
            wanted.append(other)
    found = [_weighed(spec, schedule) for schedule in wanted]
    return [one for one in found if one is not None]


def _weighed(spec: JobSpec, schedule: ScheduleSpec) -> dict[str, Any] | None:
    """None where the job cannot run so."""
    share = spec.schedule.micro_batches / schedule.micro_batches
    pace = spec.pace.model_copy(update={"forward_ms": spec.pace.forward_ms * share, "backward_ms": spec.pace.backward_ms * share})
    other = spec.model_copy(update={"schedule": schedule, "pace": pace})
    if complaints(other):
        return None
    step = _simulated(other, schedule_of(other))
    return {
        "schedule": schedule.name,
        "micro_batches": schedule.micro_batches,
        "chunks": schedule.chunks,
        "cut_evenly": is_even(other),
        "bubble_share": bubble_share(other),
        "step_ms": step.makespan,
        # A micro-batch of half the samples holds half as much, and so does a stage of half the layers.
        "held": max(step.peak_held) * share / schedule.chunks,
        "sets": _differences(spec.schedule, schedule),
    }


def _differences(old: ScheduleSpec, new: ScheduleSpec) -> dict[str, Any]:
    """What the launch form's address has to set."""
    before = old.model_dump()
    return {f"schedule.{field}": json.dumps(value) for field, value in new.model_dump().items() if value != before[field]}
