"""The bubble that a schedule has in theory: equal stages, hand-offs that cost nothing.

Shares of the whole are idle time over all ranks' time, (p−1)/(m+p−1); shares of the ideal are idle time
over busy time, (p−1)/m (GPipe, Huang et al., 2019; PipeDream-Flush, Narayanan et al., 2021).
"""

from __future__ import annotations

from fractions import Fraction

from trainer.spec import JobSpec


def bubble_share(spec: JobSpec) -> float:
    """Idle share of the whole, from the first forward to the last backward of a step."""
    return float(_share(spec))


def ideal_share(spec: JobSpec) -> float:
    """Idle time over busy time: what the step takes longer than without a bubble."""
    share = _share(spec)
    return float(share / (1 - share))


def bubble_formula(spec: JobSpec) -> str:
    """The formula behind `bubble_share` and its value, such as "(p−1)/(m+p−1) = 3/11"."""
    if spec.grid.pp == 1:
        return "no pipeline, no bubble: 0"
    return f"{_formula(spec)} = {_as_text(_share(spec))}"


def ideal_formula(spec: JobSpec) -> str:
    """The formula behind `ideal_share` and its value, such as "(p−1)/m = 3/8"."""
    if spec.grid.pp == 1:
        return "no pipeline, no bubble: 0"
    share = _share(spec)
    split, naive = spec.schedule.split_backward, spec.schedule.name == "naive"
    formula = {
        (False, False): "(p−1)/m",
        (False, True): "p−1",
        (True, False): "(p−1)(F+I)/(m(F+B))",
        (True, True): "(p−1)(F+I)/(F+B)",
    }[split, naive]
    return f"{formula} = {_as_text(share / (1 - share))}"


def _formula(spec: JobSpec) -> str:
    split, naive = spec.schedule.split_backward, spec.schedule.name == "naive"
    return {
        (False, False): "(p−1)/(m+p−1)",
        (False, True): "(p−1)/p",
        (True, False): "(p−1)(F+I)/(m(F+B)+(p−1)(F+I))",
        (True, True): "(p−1)(F+I)/(F+B+(p−1)(F+I))",
    }[split, naive]


def _share(spec: JobSpec) -> Fraction:
    """Every stage idles while the first micro-batch comes to it and the last one goes on from it.

    That takes (p−1)(F+I) of a step, I being what the previous stage waits for: the whole backward B,
    or its first half when it is split. A naive pipeline idles so for every single micro-batch.
    """
    p, m = spec.grid.pp, spec.schedule.micro_batches
    forward, whole = Fraction(spec.pace.forward_ms), Fraction(spec.pace.backward_ms)
    handed_on = whole / 2 if spec.schedule.split_backward else whole
    rounds = m if spec.schedule.name == "naive" else 1
    idle = rounds * (p - 1) * (forward + handed_on)
    return idle / (m * (forward + whole) + idle)


def _as_text(share: Fraction) -> str:
    if share.denominator > 999:
        return f"{float(share):.4f}"
    return str(share)
