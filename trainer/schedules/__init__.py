"""Pipeline schedules as pure data: who does what in which order. Nothing here loads torch."""

from __future__ import annotations

from collections.abc import Callable

from trainer.schedules.actions import Action, Do, Schedule
from trainer.schedules.gpipe import gpipe
from trainer.schedules.naive import naive
from trainer.schedules.one_f_one_b import one_f_one_b
from trainer.spec import JobSpec

SCHEDULES: dict[str, Callable[[int, int], Schedule]] = {"naive": naive, "gpipe": gpipe, "1f1b": one_f_one_b}


def schedule_of(spec: JobSpec) -> Schedule:
    """Every pipeline rank's actions in one step of the job."""
    schedule = SCHEDULES[spec.schedule.name](spec.grid.pp, spec.schedule.micro_batches)
    return split_backward(schedule) if spec.schedule.split_backward else schedule


def split_backward(schedule: Schedule) -> Schedule:
    """Each backward as its two halves, the second right after the first.

    The gradient that the previous stage waits for leaves half a backward earlier.
    """
    return [
        [
            part
            for action in actions
            for part in (
                (Action(Do.BACKWARD_INPUT, action.stage, action.micro_batch),
                 Action(Do.BACKWARD_WEIGHT, action.stage, action.micro_batch))
                if action.do is Do.BACKWARD else (action,)
            )
        ]
        for actions in schedule
    ]
