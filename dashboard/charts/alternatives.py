"""The same work in other orders: what each would take, by the simulator."""

from __future__ import annotations

import json
from typing import Any

from dashboard.runs.words import schedule_name
from trainer.emulate.durations import durations_ms
from trainer.misfits import complaints
from trainer.schedules import schedule_of
from trainer.schedules.actions import Schedule
from trainer.schedules.cuts import is_even, shares_of
from trainer.schedules.family import SCHEDULES
from trainer.schedules.simulate import Simulation, simulate
from trainer.schedules.theory import bubble_share
from trainer.spec import JobSpec, ScheduleSpec

MOST_WEIGHED = 1024  # stages × micro-batches of a job whose alternatives are simulated


def simulated(spec: JobSpec, schedule: Schedule) -> Simulation:
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
    step = simulated(other, schedule_of(other))
    return {
        "schedule": schedule.name,
        "words": schedule_name(schedule.name),
        "micro_batches": schedule.micro_batches,
        "chunks": schedule.chunks,
        "ways": other.ways,
        "cut_evenly": is_even(other),
        "bubble_share": bubble_share(other),
        "step_ms": step.makespan,
        # A micro-batch of half the samples holds half as much, and so does a stage of half the layers.
        "held": max(step.peak_held) * share / schedule.chunks,
        "sets": _differences(spec, other),
    }


def _differences(old: JobSpec, new: JobSpec) -> dict[str, Any]:
    """What the launch form's address has to set: the schedule, and the pace of smaller or larger micro-batches if it counts."""
    parts = ("schedule", "pace") if old.pace.kind == "paced" else ("schedule",)
    before, after = old.model_dump(), new.model_dump()
    return {f"{part}.{field}": json.dumps(value)
            for part in parts for field, value in after[part].items() if value != before[part][field]}
