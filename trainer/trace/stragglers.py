"""Ranks that compute for longer than the others, from the busy times of single steps. Memory does not grow with the run."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

# A rank is slow in a step from this many times the others' median on. Paced ranks differ by far less; ranks that really
# compute on shared cores may differ by more in one step, but not in several running.
SLOW_FROM = 1.15
STEPS_RUNNING = 3


@dataclass
class _Stretch:
    """Steps running in which a rank was slow."""

    first_step: int
    steps: int = 0
    factors: float = 0.0  # their sum


class Stragglers:
    """Give it each step's busy times once, in order; `found` names the ranks that are slow now."""

    def __init__(self) -> None:
        self._stretches: dict[int, _Stretch] = {}

    def add(self, step: int, busy_ns: list[int]) -> None:
        """Busy times by rank. A job of one rank has nobody to be compared with."""
        for rank, own_ns in enumerate(busy_ns):
            others_ns = median(busy_ns[:rank] + busy_ns[rank + 1:]) if len(busy_ns) > 1 else 0
            if not others_ns or own_ns < SLOW_FROM * others_ns:
                self._stretches.pop(rank, None)
                continue
            stretch = self._stretches.setdefault(rank, _Stretch(step))
            stretch.steps += 1
            stretch.factors += own_ns / others_ns

    def found(self) -> list[dict[str, Any]]:
        return [
            {"rank": rank, "from_step": stretch.first_step, "factor": stretch.factors / stretch.steps}
            for rank, stretch in sorted(self._stretches.items()) if stretch.steps >= STEPS_RUNNING
        ]
