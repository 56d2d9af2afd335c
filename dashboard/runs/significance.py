"""Whether two runs' steps differ by more than they scatter: Welch's t-test.

Welch, "The generalization of 'Student's' problem when several different population variances are involved",
Biometrika 34, 1947. It takes steps as independent; neighbouring steps are alike, so a p close to the
border says less than it seems.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

SIGNIFICANT = 0.01  # p below which a difference is called one


def welch_p(one: Sequence[float], other: Sequence[float]) -> float | None:
    """The two-sided p that samples of equal means differ as much; None with fewer than three values in either."""
    if min(len(one), len(other)) < 3:
        return None
    a, b = np.asarray(one, float), np.asarray(other, float)
    spread_a, spread_b = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    if spread_a + spread_b == 0:
        return 1.0 if a.mean() == b.mean() else 0.0
    t = (a.mean() - b.mean()) / math.sqrt(spread_a + spread_b)
    freedom = (spread_a + spread_b) ** 2 / (spread_a**2 / (len(a) - 1) + spread_b**2 / (len(b) - 1))
    return student_p(float(t), float(freedom))


def student_p(t: float, freedom: float) -> float:
    """P(|T| ≥ |t|) of Student's distribution: I_x(ν/2, 1/2) with x = ν / (ν + t²) (Abramowitz and Stegun, 26.7.1)."""
    whole = freedom + t * t
    return incomplete_beta(freedom / 2, 0.5, freedom / whole, t * t / whole)


def incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """The regularised I_x(a, b), by its continued fraction (Abramowitz and Stegun, 26.5.8).

    `rest` is 1 − x, given apart because of what the subtraction would lose.
    """
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # there the fraction of the mirrored function converges fast
        return 1 - incomplete_beta(b, a, rest, x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    return math.exp(log_front) / a / _fraction(a, b, x)


def _fraction(a: float, b: float, x: float) -> float:
    """1 + d₁/(1 + d₂/(1 + …)), from the inside out; 200 terms are plenty where it is used."""
    value = 1.0
    for m in range(200, 0, -1):
        half = m // 2
        if m % 2:
            term = -(a + half) * (a + b + half) / ((a + 2 * half) * (a + 2 * half + 1))
        else:
            term = half * (b - half) / ((a + 2 * half - 1) * (a + 2 * half))
        value = 1 + term * x / value
    return value
