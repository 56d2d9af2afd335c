"""What of a JobSpec does not fit its schedule, and what would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.complaints import FieldError, choices
from trainer.schedules.csv_text import from_csv
from trainer.schedules.cuts import nearly_even
from trainer.schedules.family import SCHEDULES, Family
from trainer.schedules.validate import ScheduleError, validate

if TYPE_CHECKING:
    from trainer.schedules.actions import Schedule
    from trainer.spec import JobSpec

# Those whose letters between two ranks are sent in the order in which they are taken.
WITHOUT_TAGS = ("naive", "gpipe", "1f1b", "zb-h1")


def complaints(spec: JobSpec) -> list[FieldError]:
    schedule = spec.schedule
    found = _of_layers(spec)
    if schedule.name == "csv":
        found += _of_text(spec)
    else:
        if schedule.csv:
            found.append(FieldError("schedule.csv", schedule.csv, "only the schedule csv has a text; an empty one would do"))
        found += _of_family(spec, SCHEDULES[schedule.name])
    if spec.device == "cuda" and spec.grid.pp > 1 and schedule.name not in WITHOUT_TAGS:
        found.append(FieldError("device", spec.device, "NCCL takes messages in the order in which they are sent, and this "
                                f"schedule's cross each other; cpu would do, or the schedule {choices(WITHOUT_TAGS)}"))
    return found


def _of_layers(spec: JobSpec) -> list[FieldError]:
    """Every stage has as many layers as is said, or all have equally many."""
    layers, pp, chunks, given = spec.model.layers, spec.grid.pp, spec.schedule.chunks, spec.schedule.layers
    if given and layers >= pp * chunks:
        return _of_cuts(given, layers, pp * chunks)
    if layers % (pp * chunks) == 0:
        return []
    cut = ", ".join(map(str, nearly_even(layers, pp * chunks))) if layers > pp * chunks else ""
    would = f"would do, or the cuts {cut} (schedule.layers)" if cut else "would do"
    fitting = [n for n in range(1, layers + 1) if layers % (n * chunks) == 0]
    if fitting:
        of_each = f"{pp} × {chunks}" if chunks > 1 else f"{pp}"
        return [FieldError("grid.pp", pp, f"{layers} layers do not divide into {of_each} stages; {choices(fitting)} {would}")]
    fitting = [n for n in range(1, layers + 1) if layers % n == 0]
    return [FieldError("schedule.chunks", chunks,
                       f"{layers} layers do not divide into {chunks} stages a rank; {choices(fitting)} {would}, or more layers")]


def _of_cuts(given: tuple[int, ...], layers: int, stages: int) -> list[FieldError]:
    wrong = []
    if len(given) != stages:
        wrong.append(f"of {stages} stages it names {len(given)}")
    if sum(given) != layers:
        wrong.append(f"of {layers} layers {sum(given)}")
    would = ", ".join(map(str, nearly_even(layers, stages)))
    return [FieldError("schedule.layers", list(given), f"{' and '.join(wrong)}; {would} would do")] if wrong else []


def _of_family(spec: JobSpec, family: Family) -> list[FieldError]:
    schedule, pp = spec.schedule, spec.grid.pp
    name, m, chunks = schedule.name, schedule.micro_batches, schedule.chunks
    found = []
    if not family.fewest_chunks <= chunks <= family.most_chunks:
        would = (f"{family.fewest_chunks}" if family.fewest_chunks == family.most_chunks
                 else f"{family.fewest_chunks} to {family.most_chunks}")
        found.append(FieldError("schedule.chunks", chunks,
                                f"under {name} a rank holds {would} stage{'' if would == '1' else 's'}; {would} would do"))
    if family.in_rounds and m % pp:
        fitting = [n for n in (m // pp * pp, (m // pp + 1) * pp) if n]
        found.append(FieldError("schedule.micro_batches", m,
                                f"under {name} micro-batches go round in groups of as many as there are ranks, {pp}; "
                                f"{choices(fitting)} would do"))
    if m < family.least_a_rank * pp:
        found.append(FieldError("schedule.micro_batches", m,
                                f"{name} needs {family.least_a_rank} micro-batches for each of {pp} ranks; "
                                f"{family.least_a_rank * pp} or more would do"))
    return found


def _of_text(spec: JobSpec) -> list[FieldError]:
    schedule, pp = spec.schedule, spec.grid.pp
    try:
        own = from_csv(schedule.csv)
        if len(own) != pp:
            raise ScheduleError(f"it has {len(own)} rows, and the pipeline has {pp} ranks; a row for each would do")
        validate(own, pp * schedule.chunks, schedule.micro_batches)
        _check_chunks(own, schedule.chunks)
    except ScheduleError as error:
        return [FieldError("schedule.csv", schedule.csv, str(error))]
    return []


def _check_chunks(schedule: Schedule, chunks: int) -> None:
    for rank, actions in enumerate(schedule):
        stages = sorted({action.stage for action in actions})
        if len(stages) != chunks:
            raise ScheduleError(f"rank {rank} has stages {', '.join(map(str, stages)) or 'none'}; "
                                f"{chunks} of them would do, as schedule.chunks says")
