"""How one clock runs against another: a line through the best of many measurements, and by how much it may be wrong.

An exchange bounds the offset for certain, so two of them bound the drift between them for certain too, and all of
them together bound it best. Where those bounds meet, the line's slope lies within them; where they do not, the drift
itself has changed, and what is claimed is as wide as they are apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

MOST_DRIFT = 100e-6  # two quartz clocks of 50 ppm each; faster ones would be broken
WANDER = 1e-6  # by how much a drift may change, with the temperature, before the samples show it


@dataclass(frozen=True)
class Sample:
    """The other clock less this one, when this one showed `local_ns`; the truth is within `uncertainty_ns`."""

    local_ns: int
    offset_ns: int
    uncertainty_ns: float


@dataclass(frozen=True)
class Line:
    """The other clock less this one is `offset_ns + drift · (local_ns − at_ns)`."""

    at_ns: int = 0
    offset_ns: int = 0
    drift: float = 0.0
    uncertainty_ns: float = 0.0  # at `at_ns`; it grows with the time from there
    drift_uncertainty: float = 0.0

    def offset_at(self, local_ns: int) -> int:
        return self.offset_ns + round(self.drift * (local_ns - self.at_ns))

    def uncertainty_at(self, local_ns: int) -> float:
        return self.uncertainty_ns + self.drift_uncertainty * abs(local_ns - self.at_ns)


def fitted(samples: Sequence[Sample]) -> Line:
    """The line through the better half of `samples`, in the order of their times.

    Its slope is the median of the slopes of all their pairs, each weighted by how well it bounds the drift (after Theil and
    Sen): of every four samples one may be wrong without a trace. All samples have a say in what is claimed.
    """
    best = _better_half(samples)
    low, high = _drift_bounds(samples)
    slopes, weights = _slopes(best)
    drift = min(max(_weighted_median(slopes, weights), min(low, high)), max(low, high)) if len(slopes) else 0.0
    drift_uncertainty = max(abs(drift - low), abs(high - drift), WANDER)
    last = best[-1]
    rest = np.array([_off(sample, last, drift) for sample in best])
    offset_ns = last.offset_ns + round(float(np.median(rest)))
    line = Line(last.local_ns, offset_ns, drift, 0.0, drift_uncertainty)
    return Line(last.local_ns, offset_ns, drift, _uncertainty(line, samples), drift_uncertainty)


def _uncertainty(line: Line, samples: Sequence[Sample]) -> float:
    """At the line's own moment: what the best sample allows, once it has aged."""
    return min(
        abs(sample.offset_ns - line.offset_at(sample.local_ns)) + sample.uncertainty_ns
        + line.drift_uncertainty * abs(line.at_ns - sample.local_ns)
        for sample in samples
    )


def _better_half(samples: Sequence[Sample]) -> list[Sample]:
    """At least two, if there are."""
    kept = sorted(samples, key=lambda sample: sample.uncertainty_ns)[: max(2, (len(samples) + 1) // 2)]
    return sorted(kept, key=lambda sample: sample.local_ns)


def _drift_bounds(samples: Sequence[Sample]) -> tuple[float, float]:
    """What every pair allows; the lower one is above the upper one where pairs contradict each other."""
    low, high = -MOST_DRIFT, MOST_DRIFT
    for before, after in combinations(samples, 2):
        apart_ns = after.local_ns - before.local_ns
        if apart_ns > 0:
            slope, reach = (after.offset_ns - before.offset_ns) / apart_ns, _reach(before, after)
            low, high = max(low, slope - reach), min(high, slope + reach)
    return low, high


def _slopes(samples: Sequence[Sample]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    pairs = [(before, after) for before, after in combinations(samples, 2) if after.local_ns > before.local_ns]
    slopes = [(after.offset_ns - before.offset_ns) / (after.local_ns - before.local_ns) for before, after in pairs]
    return np.array(slopes), np.array([1 / max(_reach(*pair), 1e-12) for pair in pairs])


def _reach(before: Sample, after: Sample) -> float:
    return (before.uncertainty_ns + after.uncertainty_ns) / (after.local_ns - before.local_ns)


def _weighted_median(values: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


def _off(sample: Sample, last: Sample, drift: float) -> float:
    return sample.offset_ns - last.offset_ns - drift * (sample.local_ns - last.local_ns)
