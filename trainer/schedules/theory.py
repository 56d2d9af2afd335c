"""The bubble that a schedule has in theory: equal stages, hand-offs that cost nothing.

Shares of the whole are idle time over all ranks' time, (p−1)/(m+p−1); shares of the ideal are idle time
over busy time, (p−1)/m (GPipe, Huang et al., 2019; PipeDream-Flush, Narayanan et al., 2021). Where no closed
formula holds, as for a schedule of one's own, theory is what the simulator finds.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from trainer.emulate.durations import durations_ms
from trainer.schedules import schedule_of
from trainer.schedules.formulas import Idle, Shape, Times, idle_of
from trainer.schedules.simulate import simulate

if TYPE_CHECKING:
    from trainer.spec import JobSpec

# Beyond so many micro-batches a rank the steady phase repeats itself and idle time stays what it is.
_STEADY_A_RANK = 4


def bubble_share(spec: JobSpec) -> float:
    """Idle share of the whole, from the first forward to the last backward of a step."""
    idle = _idle(spec).time
    return float(idle / (_work(spec) + idle))


def ideal_share(spec: JobSpec) -> float:
    """Idle time over busy time: what the step takes longer than without a bubble."""
    return float(_idle(spec).time / _work(spec))


def bubble_formula(spec: JobSpec) -> str:
    """The formula behind `bubble_share` and its value, such as "(p−1)/(m+p−1) = 3/11"."""
    if spec.grid.pp == 1:
        return "no pipeline, no bubble: 0"
    idle = _idle(spec)
    return f"{idle.share} = {_as_text(idle.time / (_work(spec) + idle.time))}"


def ideal_formula(spec: JobSpec) -> str:
    """The formula behind `ideal_share` and its value, such as "(p−1)/m = 3/8"."""
    if spec.grid.pp == 1:
        return "no pipeline, no bubble: 0"
    idle = _idle(spec)
    return f"{idle.ideal} = {_as_text(idle.time / _work(spec))}"


def _times(spec: JobSpec) -> Times:
    """The halves of a backward share it equally."""
    half = Fraction(spec.pace.backward_ms) / 2
    return Times(Fraction(spec.pace.forward_ms), half, half)


def _work(spec: JobSpec) -> Fraction:
    """What every rank works in one step."""
    return spec.schedule.micro_batches * _times(spec).work


def _idle(spec: JobSpec) -> Idle:
    if spec.grid.pp == 1:
        return Idle(Fraction(0), "0", "0")
    schedule = spec.schedule
    shape = Shape(spec.grid.pp, schedule.micro_batches, schedule.chunks)
    found = idle_of(schedule.name, schedule.split_backward, shape, _times(spec))
    return found or Idle(_simulated(_of_steady_length(spec)), "by simulation", "by simulation")


def _of_steady_length(spec: JobSpec) -> JobSpec:
    """The same job, of no more micro-batches than it takes to know its idle time."""
    p, m = spec.grid.pp, spec.schedule.micro_batches
    if spec.schedule.name == "csv" or m <= _STEADY_A_RANK * p:
        return spec
    schedule = spec.schedule.model_copy(update={"micro_batches": _STEADY_A_RANK * p})
    return spec.model_copy(update={"schedule": schedule})


@lru_cache(maxsize=256)
def _simulated(spec: JobSpec) -> Fraction:
    step = simulate(schedule_of(spec), durations_ms(spec.pace, spec.schedule.chunks))
    return Fraction(step.makespan) - _work(spec)


def _as_text(share: Fraction) -> str:
    if share.denominator > 999:
        return f"{float(share):.4f}"
    return str(share)
