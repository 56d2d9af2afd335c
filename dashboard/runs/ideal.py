"""A step as its schedule would run by the clock, for the page to lay under a measured one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainer.emulate.durations import durations_ms
from trainer.schedules import schedule_of
from trainer.schedules.actions import Do
from trainer.schedules.cuts import shares_of
from trainer.schedules.simulate import Timed, simulate
from trainer.spec import JobSpec

MOST_CHUNKS = 4096  # stages × micro-batches: about 12,000 bars, and a tenth of a second to simulate
LONGEST_MS = 86_400_000.0


class NoIdeal(ValueError):
    """There is none to show; the message says why."""


def ideal(spec: JobSpec, given_ms: Mapping[str, str]) -> dict[str, Any]:
    """`bars` of one step, `[place in the pipeline, letter, stage, micro-batch, start, end]` in ms from the step's first
    work, and their `makespan_ms`. `given_ms` may hold an action's duration in an average stage by its letter; the others are
    the job's own.
    """
    chunks = spec.grid.pp * spec.schedule.chunks * spec.schedule.micro_batches
    if chunks > MOST_CHUNKS:
        raise NoIdeal(f"This job has {chunks} stages × micro-batches; the ideal is worked out for up to {MOST_CHUNKS}.")
    given = {Do(letter): _ms(letter, text) * spec.schedule.chunks for letter, text in given_ms.items()}  # of all a rank's stages
    step = simulate(schedule_of(spec), durations_ms(spec) | given, shares=shares_of(spec))
    return {"makespan_ms": step.makespan, "bars": [_bar(timed) for timed in step.timed]}


def _bar(timed: Timed) -> list[Any]:
    action = timed.action
    return [timed.rank, action.do.value, action.stage, action.micro_batch, round(timed.start, 6), round(timed.end, 6)]


def _ms(letter: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= LONGEST_MS:
        raise NoIdeal(f"{letter}: {text!r} was given; a duration in ms, above 0 and up to a day, would do.")
    return value
