"""Pipeline schedules as pure data: who does what in which order. Nothing here loads torch."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from trainer.schedules.actions import Do, Schedule
from trainer.schedules.csv_text import from_csv
from trainer.schedules.family import SCHEDULES
from trainer.schedules.phases import put_off_weights

if TYPE_CHECKING:
    from trainer.spec import JobSpec  # which asks these schedules what fits


@lru_cache(maxsize=8)  # a preview asks for the same one many times
def schedule_of(spec: JobSpec) -> Schedule:
    """Every pipeline rank's actions in one step of the job. All who ask get the same lists: they are for reading."""
    given = spec.schedule
    if given.name == "csv":
        schedule = from_csv(given.csv)
    else:
        schedule = SCHEDULES[given.name].make(spec.grid.pp, given.micro_batches, given.chunks)
    return split_backward(schedule) if given.split_backward else schedule


@lru_cache(maxsize=8)
def stages_of(spec: JobSpec) -> list[list[int]]:
    """The stages that each rank of the pipeline holds, for reading."""
    return [sorted({action.stage for action in actions}) for actions in _in_small(spec)]


def puts_off_weights(spec: JobSpec) -> bool:
    """Whether any backward is in two halves."""
    return any(action.do is Do.BACKWARD_WEIGHT for actions in _in_small(spec) for action in actions)


def _in_small(spec: JobSpec) -> Schedule:
    """The schedule with a few micro-batches, of the same nature as with many."""
    few = spec.schedule.model_copy(update={"micro_batches": min(spec.schedule.micro_batches, 2 * spec.grid.pp)})
    return schedule_of(spec.model_copy(update={"schedule": few}))


def split_backward(schedule: Schedule) -> Schedule:
    """Each whole backward as its two halves, the second right after the first."""
    return [put_off_weights(actions, lag=0) for actions in schedule]
