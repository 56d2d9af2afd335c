"""Pipeline schedules as pure data: who does what in which order. Nothing here loads torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.schedules.actions import Schedule, homes
from trainer.schedules.csv_text import from_csv
from trainer.schedules.family import SCHEDULES
from trainer.schedules.phases import put_off_weights

if TYPE_CHECKING:
    from trainer.spec import JobSpec  # which asks these schedules what fits


def schedule_of(spec: JobSpec) -> Schedule:
    """Every pipeline rank's actions in one step of the job."""
    given = spec.schedule
    if given.name == "csv":
        schedule = from_csv(given.csv)
    else:
        schedule = SCHEDULES[given.name].make(spec.grid.pp, given.micro_batches, given.chunks)
    return split_backward(schedule) if given.split_backward else schedule


def stages_of(spec: JobSpec) -> list[list[int]]:
    """The stages that each rank of the pipeline holds, which a few micro-batches tell."""
    schedule = spec.schedule.model_copy(update={"micro_batches": min(spec.schedule.micro_batches, 2 * spec.grid.pp)})
    home = homes(schedule_of(spec.model_copy(update={"schedule": schedule})))
    return [sorted(stage for stage, rank in home.items() if rank == place) for place in range(spec.grid.pp)]


def split_backward(schedule: Schedule) -> Schedule:
    """Each whole backward as its two halves, the second right after the first."""
    return [put_off_weights(actions, lag=0) for actions in schedule]
