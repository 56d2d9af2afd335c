"""A run's summary from the rows of its steps; `trainer.trace.figures` defines each figure."""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from trainer.trace.stragglers import Stragglers

RESIDUAL_STEPS = 200  # the latest, of which the clocks' residual is taken


class RunFigures:
    """The summary of the step rows so far; a number each for every complete step is kept."""

    def __init__(self) -> None:
        self._bubble, self._ideal, self._period_ns = array("d"), array("d"), array("d")
        self._first_loss: tuple[float, float] = (math.inf, math.nan)  # step, loss
        self._last_loss: tuple[float, float] = (-1.0, math.nan)
        self._complete = 0
        self._communication_ns = self._hidden_ns = 0
        self._end_apart_ns, self._exposed, self._rate = array("d"), array("d"), array("d")
        self._end_off_ns: deque[list[int | None]] = deque(maxlen=RESIDUAL_STEPS)
        self._stragglers = Stragglers()

    def add(self, row: dict[str, Any]) -> None:
        if row["loss"] is not None:
            self._first_loss = min(self._first_loss, (row["step"], row["loss"]))
            self._last_loss = max(self._last_loss, (row["step"], row["loss"]))
        if not row["complete"]:
            return
        self._complete += 1
        self._period_ns.append(row["period_ns"])
        self._stragglers.add(row["step"], row["busy_ns"])
        self._communication_ns += sum(row["communication_ns"])
        self._hidden_ns += sum(row["hidden_ns"])
        for values, name in ((self._exposed, "exposed_share"), (self._rate, "samples_per_second")):
            if row[name] is not None:
                values.append(row[name])
        if any(row["collective_ns"]):
            self._end_apart_ns.append(row["end_apart_ns"])
            self._end_off_ns.append(row["end_off_ns"])
        if row["bubble_share"] is not None:
            self._bubble.append(row["bubble_share"])
            self._ideal.append(row["ideal_share"])

    def as_dict(self) -> dict[str, Any]:
        step_ns = _median(self._period_ns)
        return {
            "bubble_share": _median(self._bubble),
            "bubble_share_ideal": _median(self._ideal),
            "overlap_share": self._hidden_ns / self._communication_ns if self._communication_ns else None,
            "exposed_share": _median(self._exposed),
            "samples_per_second": _median(self._rate),
            "ends_apart_ns": _median(self._end_apart_ns),
            "clock_residual_ns": residual_ns(self._end_off_ns),
            "loss_first": _finite(self._first_loss[1]),
            "loss_last": _finite(self._last_loss[1]),
            "step_seconds": None if step_ns is None else step_ns / 1e9,
            "steps_figured": self._complete,
            "slow_ranks": self._stragglers.found() or None,
        }


def residual_ns(end_off_ns: Collection[Sequence[int | None]]) -> float | None:
    """Of the ends by step and rank, None where a rank took part in no collective; None if none did."""
    if not end_off_ns:
        return None
    by_rank = np.array(end_off_ns, float).T
    medians = [abs(float(np.median(known))) for off in by_rank if len(known := off[~np.isnan(off)])]
    return max(medians, default=None)


def _median(values: array[float]) -> float | None:
    return float(np.median(np.frombuffer(values, np.float64))) if len(values) else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
