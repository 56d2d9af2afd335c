"""The bubble that a schedule has in theory: stages as they are cut, hand-offs that cost nothing.

Shares of the whole are idle time over all ranks' time, (p−1)/(m+p−1); shares of the ideal are idle time
over busy time, (p−1)/m (GPipe, Huang et al., 2019; PipeDream-Flush, Narayanan et al., 2021). Where no closed
formula holds, as for a schedule of one's own or unequal stages, theory is what the simulator finds.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from trainer.emulate.durations import durations_ms
from trainer.schedules import schedule_of
from trainer.schedules.actions import Do
from trainer.schedules.cuts import is_even, shares_of
from trainer.schedules.formulas import Idle, Shape, Times, idle_of
from trainer.schedules.simulate import simulate

if TYPE_CHECKING:
    from trainer.spec import JobSpec

# Beyond so many micro-batches a rank the steady phase of equal stages repeats itself and idle time stays what it is.
_STEADY_A_RANK = 4
# Of unequal stages every micro-batch adds to the idle time of all but the slowest rank. So many of them, times stages, are
# simulated; what a round of micro-batches adds by then, every further one adds as well.
_MOST_SIMULATED = 8192


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
    lasts = durations_ms(spec)
    return Times(Fraction(lasts[Do.FORWARD]), Fraction(lasts[Do.BACKWARD_INPUT]), Fraction(lasts[Do.BACKWARD_WEIGHT]))


def _work(spec: JobSpec) -> Fraction:
    """What every rank works in one step, on average where their stages are unequal."""
    return spec.schedule.micro_batches * _times(spec).work


def _idle(spec: JobSpec) -> Idle:
    if spec.grid.pp == 1:
        return Idle(Fraction(0), "0", "0")
    schedule = spec.schedule
    if not is_even(spec):
        return _by_simulation(_of_unequal_stages(spec))
    shape = Shape(spec.grid.pp, schedule.micro_batches, schedule.chunks)
    found = idle_of(schedule.name, schedule.split_backward, shape, _times(spec))
    return found or _by_simulation(_simulated(shortened(spec, _STEADY_A_RANK * spec.grid.pp)))


def _by_simulation(idle: Fraction) -> Idle:
    return Idle(idle, "by simulation", "by simulation")


def _of_unequal_stages(spec: JobSpec) -> Fraction:
    p = spec.grid.pp
    rounds = max(3, _MOST_SIMULATED // (p * p * spec.schedule.chunks))
    short = shortened(spec, rounds * p)
    idle, left = _simulated(short), spec.schedule.micro_batches - short.schedule.micro_batches
    return idle + (idle - _simulated(shortened(spec, (rounds - 1) * p))) * left / p if left else idle


def shortened(spec: JobSpec, micro_batches: int) -> JobSpec:
    """The same job, of no more than so many micro-batches. A schedule of one's own stays as it is."""
    if spec.schedule.name == "csv" or spec.schedule.micro_batches <= micro_batches:
        return spec
    schedule = spec.schedule.model_copy(update={"micro_batches": micro_batches})
    batch = spec.batch // spec.schedule.micro_batches * micro_batches  # a micro-batch has as many samples as before
    return spec.model_copy(update={"schedule": schedule, "batch": batch})


@lru_cache(maxsize=256)
def _simulated(spec: JobSpec) -> Fraction:
    """The idle time of every rank, or of the average one."""
    step = simulate(schedule_of(spec), durations_ms(spec), shares=shares_of(spec))
    return Fraction(step.makespan) - _work(spec)


def _as_text(share: Fraction) -> str:
    if share.denominator > 999:
        return f"{float(share):.4f}"
    return str(share)
