"""A step's time, cut into what each cause costs. The pieces add up to the measured step time.

Each piece is the difference between two steps of the simulator, of which the second has one more cause in it: equal
stages, then the stages as they are cut, then actions as long as they were measured, then the slow ranks. What the
simulator does not have is what the measured step takes beyond that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.charts.explain.seen import RECORDING_MS_A_SPAN, Seen
from dashboard.runs.words import percent
from trainer.emulate.durations import durations_ms
from trainer.schedules import schedule_of
from trainer.schedules.actions import Do
from trainer.schedules.cuts import shares_of
from trainer.schedules.simulate import simulate
from trainer.spec import JobSpec

MOST_SIMULATED = 4096  # stages × micro-batches
NOTABLE_SLOWNESS = 1.1  # of a rank, against the usual one: less is noise


@dataclass(frozen=True)
class Piece:
    """`ms` of a step. `key` is also what its remedies go by."""

    key: str
    title: str
    ms: float
    says: str


def can_simulate(spec: JobSpec) -> bool:
    return spec.grid.pp * spec.schedule.chunks * spec.schedule.micro_batches <= MOST_SIMULATED


def step_ms(spec: JobSpec, slowness: Sequence[float] = ()) -> float:
    """A step's actions by the simulator; `slowness` by place in the pipeline."""
    return simulate(schedule_of(spec), durations_ms(spec), shares=shares_of(spec), slowness=slowness).makespan


def slowness_of_places(seen: Seen) -> list[float]:
    """Of each place in the pipeline, the slowest rank's: the others of its place wait for it where they meet."""
    found = [0.0] * seen.spec.grid.pp
    for place, slow in zip(seen.places, seen.slowness, strict=True):
        found[place] = max(found[place], slow)
    return found


def slow_ranks(seen: Seen) -> list[int]:
    return [rank for rank, slow in enumerate(seen.slowness) if slow > NOTABLE_SLOWNESS * seen.usual]


def pieces(seen: Seen) -> list[Piece]:
    """In the order in which they add up; pieces of nothing are left out."""
    spec = seen.timed
    lasts = durations_ms(spec)
    again_ms = spec.schedule.micro_batches * (lasts[Do.BACKWARD] - spec.pace.backward_ms)
    work_ms = spec.schedule.micro_batches * (lasts[Do.FORWARD] + lasts[Do.BACKWARD])
    even = spec.model_copy(update={"schedule": spec.schedule.model_copy(update={"layers": ()})})
    fits_evenly = spec.model.layers % (spec.grid.pp * spec.schedule.chunks) == 0
    usual = [seen.usual] * spec.grid.pp
    with_cuts = step_ms(spec)
    without_cuts = step_ms(even) if fits_evenly else with_cuts
    as_long = step_ms(spec, usual)
    watching_ms = 0.0 if spec.pace.is_emulated else min(seen.recording_ms, work_ms)
    late = slow_ranks(seen)
    as_slow = step_ms(spec, slowness_of_places(seen)) if late else as_long
    found = [
        Piece("work", "Work", work_ms - again_ms - watching_ms, "The model's forwards and backwards, on an average rank."),
        Piece("watching", "Watching", watching_ms,
              f"{seen.spans:,} spans a step on the busiest rank, each about {RECORDING_MS_A_SPAN * 1000:.2g} µs to record."),
        Piece("recompute", "Forwards run again", again_ms,
              "Activation checkpointing keeps each layer's input alone and runs its forward again before its backward."),
        Piece("bubble", "Bubble of the schedule", without_cuts - work_ms,
              "Ranks idle while a step's first micro-batch comes to them and its last one leaves them."),
        Piece("cuts", "Unequal stages", with_cuts - without_cuts, _cuts_words(spec)),
        Piece("inside", "Inside actions", as_long - with_cuts, _inside_words(spec)),
        Piece("slow-rank", "A slow rank" if len(late) < 2 else "Slow ranks", as_slow - as_long, _late_words(seen, late)),
        Piece("messages", "Waiting in the pipeline" if spec.grid.pp > 1 else "Between micro-batches", seen.extent_ms - as_slow,
              "What the work took beyond the simulated order of it: messages on their way, and ranks that woke up late."),
        Piece("between", _between_title(seen), seen.period_ms - seen.extent_ms, _between_words(spec)),
    ]
    return [piece for piece in found if abs(piece.ms) > 1e-3 * seen.period_ms or piece.key == "work"]


def _cuts_words(spec: JobSpec) -> str:
    layers = list(spec.schedule.layers)
    return f"Stages have {', '.join(map(str, layers))} layers, and all wait for the longest one." if layers else ""


def _inside_words(spec: JobSpec) -> str:
    split = [word for axis, word in (("tp", "tensor slices"), ("cp", "context parts"), ("ep", "expert parts"))
             if getattr(spec.grid, axis) > 1]
    if split:
        return f"Actions last longer than the pace says: {' and '.join(split)} talk to each other inside them."
    return "Actions last longer than the pace says: this machine's real work takes longer than what it stands for."


def _late_words(seen: Seen, late: list[int]) -> str:
    if not late:
        return ""
    worst = max(late, key=lambda rank: seen.slowness[rank])
    over = seen.slowness[worst] / seen.usual - 1
    others = f", and {len(late) - 1} more are slow" if len(late) > 1 else ""
    return f"Rank {worst} takes {percent(over)} longer than its layers take on the other ranks, in the median of steps{others}."


def _between_title(seen: Seen) -> str:
    """By what most of it is. In a pipeline messages between stages are not hidden either, so there nobody can tell."""
    averaging = seen.spec.averaging_ranks > 1 and seen.spec.grid.pp == 1
    return "Averaging gradients" if averaging and seen.exposed_ms > (seen.period_ms - seen.extent_ms) / 2 else "Between steps"


def _between_words(spec: JobSpec) -> str:
    shared = "gradients that are averaged when the last backward is over, " if spec.averaging_ranks > 1 else ""
    return f"From a step's last backward to the next one's first forward: {shared}the optimizer, the next samples."
