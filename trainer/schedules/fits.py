"""What of a JobSpec does not fit its schedule, and what would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.complaints import FieldError, choices
from trainer.schedules.csv_text import from_csv
from trainer.schedules.cuts import nearly_even
from trainer.schedules.family import MOST_CHUNKS, SCHEDULES, Family
from trainer.schedules.validate import ScheduleError, validate

if TYPE_CHECKING:
    from trainer.schedules.actions import Schedule
    from trainer.spec import JobSpec

# Those whose letters between two ranks are sent in the order in which they are taken.
WITHOUT_TAGS = ("naive", "gpipe", "1f1b", "zb-h1")


def complaints(spec: JobSpec) -> list[FieldError]:
    schedule = spec.schedule
    found = []
    if schedule.name == "csv":
        found += _of_layers(spec, range(1, MOST_CHUNKS + 1)) + _of_text(spec)
    else:
        if schedule.csv:
            found.append(FieldError("schedule.csv", schedule.csv, "only the schedule csv has a text; an empty one would do"))
        family = SCHEDULES[schedule.name]
        chunks = range(family.fewest_chunks, family.most_chunks + 1)
        odd = _of_ways(spec, family)
        if not odd:
            found += _of_layers(spec, chunks) if schedule.chunks in chunks else [_of_chunks(spec, chunks)]
        found += odd or _of_family(spec, family)
    if spec.device == "cuda" and spec.grid.pp > 1 and schedule.name not in WITHOUT_TAGS:
        found.append(FieldError("device", spec.device, "NCCL takes messages in the order in which they are sent, and this "
                                f"schedule's cross each other; cpu would do, or the schedule {choices(WITHOUT_TAGS)}"))
    return found


def _of_layers(spec: JobSpec, possible_chunks: range) -> list[FieldError]:
    """Every stage has as many layers as is said, or all have equally many."""
    layers, pp, chunks, given = spec.model.layers, spec.grid.pp, spec.schedule.chunks, spec.schedule.layers
    if given and layers >= pp * chunks:
        return _of_cuts(given, layers, pp * chunks)
    if layers % (pp * chunks) == 0:
        return []
    of_each = f"{pp} × {chunks}" if chunks > 1 else f"{pp}"
    whole = f"{layers} layers do not divide into {of_each} stages; "
    cut = ", ".join(map(str, nearly_even(layers, pp * chunks)))
    by_hand = f", or the cuts {cut} (schedule.layers)" if layers > pp * chunks else ""
    if layers % chunks == 0:
        fitting = [n for n in range(spec.ways, layers + 1, spec.ways) if layers % (n * chunks) == 0]
        if fitting:
            return [FieldError("grid.pp", pp, f"{whole}{choices(fitting)} would do{by_hand}")]
    fitting = [n for n in possible_chunks if layers % n == 0]
    if fitting and layers % chunks:
        return [FieldError("schedule.chunks", chunks, f"{whole}{choices(fitting)} would do{by_hand}")]
    return [_of_model(spec, f"{whole}{{}} would do{by_hand}")]


def _of_model(spec: JobSpec, message: str) -> FieldError:
    """A number of layers that a pipeline of this length can cut; of one rank, if no model is deep enough for it."""
    pp, chunks, layers = spec.grid.pp, spec.schedule.chunks, spec.model.layers
    unit = pp * chunks if pp * chunks <= spec.model.most_layers else chunks * spec.ways
    fitting = [n for n in (layers // unit * unit, (layers // unit + 1) * unit) if 0 < n <= spec.model.most_layers]
    if spec.model.name == "perceptron":
        return FieldError("model.hidden_layers", layers - 1,
                          f"with the last one {message.format(choices(n - 1 for n in fitting if n > 1))}")
    return FieldError("model.layers", layers, message.format(choices(fitting)))


def _of_cuts(given: tuple[int, ...], layers: int, stages: int) -> list[FieldError]:
    wrong = []
    if len(given) != stages:
        wrong.append(f"of {stages} stages it names {len(given)}")
    if sum(given) != layers:
        wrong.append(f"of {layers} layers {sum(given)}")
    would = ", ".join(map(str, nearly_even(layers, stages)))
    return [FieldError("schedule.layers", list(given), f"{' and '.join(wrong)}; {would} would do")] if wrong else []


def _of_chunks(spec: JobSpec, possible: range) -> FieldError:
    fewest, most = possible[0], possible[-1]
    would = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    copy = " of each copy" if spec.ways == 2 else ""
    return FieldError("schedule.chunks", spec.schedule.chunks, f"under {spec.schedule.name} a rank holds {would} "
                      f"stage{'' if would == '1' else 's'}{copy}; {would} would do")


def _of_ways(spec: JobSpec, family: Family) -> list[FieldError]:
    """The ranks of both ways meet in the middle, between two of them."""
    pp = spec.grid.pp
    if pp % family.ways == 0:
        return []
    fitting = [n for n in (pp - 1, pp + 1) if n]
    return [FieldError("grid.pp", pp, f"under {spec.schedule.name} micro-batches enter at both ends of an even number of ranks; "
                                      f"{choices(fitting)} would do")]


def _of_family(spec: JobSpec, family: Family) -> list[FieldError]:
    schedule, pp = spec.schedule, spec.grid.pp
    name, m = schedule.name, schedule.micro_batches
    found = []
    if family.in_rounds and m % pp:
        fitting = [n for n in (m // pp * pp, (m // pp + 1) * pp) if n]
        found.append(FieldError("schedule.micro_batches", m,
                                f"under {name} micro-batches go round in groups of as many as there are ranks, {pp}; "
                                f"{choices(fitting)} would do"))
    if m < family.least_a_rank * pp:
        found.append(FieldError("schedule.micro_batches", m,
                                f"{name} needs {family.least_a_rank} micro-batches for each of {pp} ranks; "
                                f"{family.least_a_rank * pp} or more would do"))
    elif m % family.ways:
        found.append(FieldError("schedule.micro_batches", m,
                                f"under {name} half of the micro-batches go each way; {m - 1} or {m + 1} would do"))
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
