"""What a run's latest steps show, as medians: how long they took, and how long each rank worked in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from trainer.emulate.durations import durations_ms
from trainer.grid import Grid
from trainer.schedules import stages_of
from trainer.schedules.actions import Do
from trainer.schedules.cuts import layers_of
from trainer.spec import JobSpec

# What a span costs the thread that records it: `manage.py bench overhead` on a virtual machine of two cores, added and waited
# for, 2.3 % of a step of a millisecond and 20 spans. By a tracepoint it is half of that.
RECORDING_MS_A_SPAN = 0.0011

_LEAST_OF_PACE = 0.95  # of the modelled work: no paced action ends before its time, so steps that are quicker were not paced

_FORWARD_SHARE = 1 / 3  # of the work at real pace: a backward multiplies twice as many matrices as a forward


@dataclass(frozen=True)
class Seen:
    """Medians over `steps` complete steps, in ms. `busy_ms[rank]` is the rank's time in forwards and backwards."""

    spec: JobSpec
    steps: int
    period_ms: float
    extent_ms: float  # from the first forward to the last backward
    busy_ms: tuple[float, ...]
    spans: int = 0  # a step, of the rank that recorded most
    exposed_ms: float = 0.0  # communication that no computing hid, on an average rank

    @property
    def recording_ms(self) -> float:
        """What the rank that recorded most spent on it in a step."""
        return self.spans * RECORDING_MS_A_SPAN

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Each rank's place in the pipeline."""
        grid = Grid.of(self.spec.grid)
        return tuple(grid.address(rank).pp for rank in range(self.spec.ranks))

    @cached_property
    def keeps_pace(self) -> bool:
        """Whether the job has an emulated pace, and ranks took at least the time that it gives them."""
        if not self.spec.pace.is_emulated:
            return False
        lasts = durations_ms(self.spec)
        work_ms = self.spec.schedule.micro_batches * (lasts[Do.FORWARD] + lasts[Do.BACKWARD])
        return float(np.mean(self.busy_ms)) >= _LEAST_OF_PACE * work_ms

    @cached_property
    def timed(self) -> JobSpec:
        """The job with a pace that says how long its actions take: the one it was given, or where it kept none the measured."""
        if self.keeps_pace:
            return self.spec
        micro_batch_ms = float(np.mean(self.busy_ms)) / self.spec.schedule.micro_batches
        pace = self.spec.pace.model_copy(update={
            "kind": "real", "forward_ms": micro_batch_ms * _FORWARD_SHARE, "backward_ms": micro_batch_ms * (1 - _FORWARD_SHARE)})
        return self.spec.model_copy(update={"pace": pace, "checkpointing": "none"})

    @cached_property
    def slowness(self) -> tuple[float, ...]:
        """By rank: its time in actions, as a multiple of what its layers would take."""
        lasts, given = durations_ms(self.timed), self.timed.schedule
        work_ms = given.micro_batches * (lasts[Do.FORWARD] + lasts[Do.BACKWARD])
        layers, even = layers_of(self.timed), self.timed.ways * self.timed.model.layers / self.timed.grid.pp
        of_place = [work_ms * sum(layers[stage] for stage in held) / even for held in stages_of(self.timed)]
        return tuple(busy / of_place[place] for busy, place in zip(self.busy_ms, self.places, strict=True))

    @cached_property
    def usual(self) -> float:
        """The slowness that half of the ranks do not exceed, the lower of two in the middle: what all have in common."""
        return sorted(self.slowness)[(len(self.slowness) - 1) // 2]


def seen(spec: JobSpec, rows: Sequence[dict[str, Any]]) -> Seen | None:
    """None as long as no step is complete. The first step, in which everything is allocated, counts only where it is alone."""
    complete = [row for row in rows if row["complete"] and row["work_end_ns"] is not None]
    complete = [row for row in complete if row["step"]] or complete
    if not complete:
        return None
    busy_ms = np.median([row["busy_ns"] for row in complete], axis=0) / 1e6
    if not busy_ms.all():
        return None
    return Seen(
        spec, len(complete), _median_ms(row["period_ns"] for row in complete),
        _median_ms(row["work_end_ns"] - row["work_start_ns"] for row in complete), tuple(busy_ms.tolist()),
        int(np.median([max(row["recorded_spans"]) for row in complete])),
        _median_ms((row["exposed_share"] or 0) * row["period_ns"] for row in complete),
    )


def _median_ms(values_ns: Any) -> float:
    return float(np.median(list(values_ns))) / 1e6
