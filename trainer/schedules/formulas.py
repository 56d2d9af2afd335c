"""How long every rank idles in a step, in closed form: equal stages, hand-offs that cost nothing.

F, I and W are what a micro-batch takes in all stages of one rank: the forward, the gradient of the input, the
gradient of the weights; B = I + W. p ranks, m micro-batches, v stages a rank. Idle time is counted from the
step's first start to its last end, over all ranks alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Times:
    forward: Fraction
    input: Fraction
    weights: Fraction

    @property
    def backward(self) -> Fraction:
        return self.input + self.weights

    @property
    def work(self) -> Fraction:
        return self.forward + self.backward


@dataclass(frozen=True)
class Shape:
    ranks: int
    micro_batches: int
    chunks: int = 1


@dataclass(frozen=True)
class Idle:
    """The idle time of every rank in one step; its share of the whole and of the work as formulas."""

    time: Fraction
    share: str
    ideal: str


def idle_of(name: str, split: bool, shape: Shape, times: Times) -> Idle | None:
    """None where no closed formula holds. `split`: every backward in its two halves, one right after the other."""
    match name:
        case "naive":
            return _naive(split, shape, times)
        case "gpipe" | "1f1b":
            return _flushed(split, shape, times)
        case "interleaved":
            # A half that is much longer than a forward comes back too late for the next round.
            return _flushed(split, shape, times) if not split or times.input <= times.forward else None
        case "breadth-first":
            return _breadth_first(split, shape, times)
        case "zb-h1" | "interleaved-zb":
            return _zero_bubble(shape, times)
        case "zb-v":
            return _zb_v(shape, times)
        case "dualpipe-v":
            return None if split else _dualpipe_v(shape, times)
        case "dualpipe":
            return None if split else _dualpipe(shape, times)
    return None


def _naive(split: bool, shape: Shape, times: Times) -> Idle:
    """For every single micro-batch the other ranks idle."""
    p, m = shape.ranks, shape.micro_batches
    if split:
        return Idle(m * (p - 1) * (times.forward + times.input), "(p−1)(F+I)/(F+B+(p−1)(F+I))", "(p−1)(F+I)/(F+B)")
    return Idle(m * (p - 1) * times.work, "(p−1)/p", "p−1")


def _flushed(split: bool, shape: Shape, times: Times) -> Idle:
    """Every rank idles while the first micro-batch comes to it and the last one goes on from it, a stage at a time.

    (p−1)(F+B)/v: GPipe (Huang et al., 2019), PipeDream-Flush and its interleaving (Narayanan et al., 2021).
    What the previous stage waits for is the whole backward, or its first half when it is split.
    """
    p, v = shape.ranks, shape.chunks
    if split:
        return _over_work((p - 1) * (times.forward + times.input) / v, "(p−1)(F+I)" + ("/v" if v > 1 else ""))
    many = "v·m" if v > 1 else "m"
    return Idle((p - 1) * times.work / v, f"(p−1)/({many}+p−1)", f"(p−1)/({many})" if v > 1 else "(p−1)/m")


def _breadth_first(split: bool, shape: Shape, times: Times) -> Idle | None:
    """As GPipe's; with fewer micro-batches than ranks each further chunk waits for the first one to come round."""
    p, m, v = shape.ranks, shape.micro_batches, shape.chunks
    if m >= p:
        return _flushed(split, shape, times)
    if split:
        return None
    return _over_work((p - 1 + (v - 1) * (p - m)) * times.work / v, "(p−1+(v−1)(p−m))(F+B)/v")


def _zero_bubble(shape: Shape, times: Times) -> Idle | None:
    """(p−1)(F+I−W)/v (Qi et al., 2023), as long as no half of the backward is longer than what it has to fill."""
    p, m, v = shape.ranks, shape.micro_batches, shape.chunks
    if m < p:
        return None
    over = "/v" if v > 1 else ""
    by_length = {
        f"(p−1)(F+I−W){over}": times.forward + times.input - times.weights,
        f"(p−1)F{over}": times.forward,
        f"(p−1)I{over}": times.input,
    }
    text = max(by_length, key=lambda words: by_length[words])
    return _over_work((p - 1) * by_length[text] / v, text)


def _zb_v(shape: Shape, times: Times) -> Idle | None:
    """No rank waits between its first start and its last end (Qi et al., 2024); but the ranks start one after the other."""
    p, m = shape.ranks, shape.micro_batches
    if m < 2 * p - 1 or times.forward > times.input or times.weights > times.input:
        return None
    if times.input > 2 * times.weights:  # there are not enough weights to put off
        return _over_work((p - 1) * (times.input - times.weights), "(p−1)(I−W)")
    if times.forward == times.input:
        return _over_work((p - 1) * times.forward / 2, "½(p−1)F")
    return _over_work((p - 1) * times.input / 2, "½(p−1)I")


def _dualpipe_v(shape: Shape, times: Times) -> Idle | None:
    """Forward and backward in turn: less than `dualpipe_v` below, since what is done first is handed on first."""
    p, m = shape.ranks, shape.micro_batches
    if m < 2 * p or not times.weights <= times.input <= times.forward:
        return None
    if times.forward - times.weights > times.input:  # a forward outlasts what is done beside it
        return _over_work((p - 1) * (times.forward - times.weights), "(p−1)(F−W)")
    return _over_work((p - 1) * (times.forward + times.input - times.weights) / 2, "½(p−1)(F+I−W)")


def _dualpipe(shape: Shape, times: Times) -> Idle | None:
    """As `_dualpipe_v` of half as many ranks, each with two stages as long as a whole one here: the other half mirrors them."""
    p, m = shape.ranks, shape.micro_batches
    if m < 2 * p or not times.weights <= times.input <= times.forward:
        return None
    if times.forward - times.weights > times.input:
        return _over_work((p - 2) * (times.forward - times.weights), "(p−2)(F−W)")
    return _over_work((Fraction(p, 2) - 1) * (times.forward + times.input - times.weights), "(½p−1)(F+I−W)")


def dualpipe(ranks: int, together: Fraction, times: Times) -> Fraction:
    """Idle time with forward and backward side by side in `together` (DeepSeek-AI, 2024); times of one stage."""
    return (Fraction(ranks, 2) - 1) * (together + times.backward - 3 * times.weights)


def dualpipe_v(ranks: int, together: Fraction, times: Times) -> Fraction:
    """As `dualpipe`, which has twice the ranks; times of one stage, of which a rank has two."""
    return (ranks - 1) * (together + times.backward - 3 * times.weights)


def _over_work(time: Fraction, text: str) -> Idle:
    return Idle(time, f"{text}/(m(F+B)+{text})", f"{text}/(m(F+B))")
