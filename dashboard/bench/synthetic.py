"""A long run's spans without the run: pipelines in copies, with jitter, all arrays.

Every action takes its mean time but for a few per cent, as on real devices; a stage begins when its input has
arrived, so waits, sends and receives fit together, and gradients are averaged between copies in buckets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from trainer.trace.frame import COUNTER_COLUMNS, MARK_COLUMNS, NONE, SPAN_COLUMNS, Columns, Frame, empty
from trainer.trace.kinds import LANE_OF, Kind

FORWARD_NS, BACKWARD_NS, TRANSFER_NS, REDUCE_NS, OPTIMIZER_NS, DATA_NS = 400_000, 800_000, 60_000, 500_000, 300_000, 90_000
JITTER = 0.03  # standard deviation of an action's time, as a share of its mean
TENSOR_BYTES, BUCKET_BYTES, BUCKETS = 4_194_304.0, 26_214_400.0, 4
BATCHES = [f"{letter}{number}" for letter in "FB" for number in range(8)]
STRINGS = ["", "dp", "pp", *BATCHES, "step", "all-reduce", "data", "adam"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Shape:
    """Ranks count copies first: rank = copy × stages + stage, as in `trainer.grid`."""

    copies: int
    stages: int
    micro_batches: int = 8

    @property
    def ranks(self) -> int:
        return self.copies * self.stages

    @property
    def spans_a_step(self) -> int:
        m, inner = self.micro_batches, self.stages - 1
        a_copy = self.stages * (2 * m + BUCKETS + 3) + 2 * inner * 3 * m  # a transfer: send, receive, and a wait
        return self.copies * a_copy


class _Rows:
    """Spans of one step, gathered column by column; each of `add`'s values is one number or one a copy."""

    def __init__(self, shape: Shape, step: int):
        self._shape, self._step = shape, step
        self._parts: list[tuple[int, Array, Array, int, int, int, float, int, str, str, int]] = []

    def add(
        self, kind: Kind, stage: int, start: Array, end: Array, micro_batch: int = NONE, of_stage: int = NONE, peer: int = NONE,
        size: float = NONE, sequence: int = NONE, name: str = "", group: str = "",
    ) -> None:
        self._parts.append((kind, start, end, micro_batch, of_stage, peer, size, sequence, name, group, stage))

    def columns(self) -> tuple[Array, Columns]:
        """(rank, columns) in the order of ranks and, within one, of ends: as a rank records them."""
        copies = np.arange(self._shape.copies)
        kind, start, end, micro_batch, stage, peer, size, sequence, name, group, at = zip(*self._parts, strict=True)

        def spread(values: Any) -> Array:
            return np.repeat(np.array(values)[:, None], len(copies), axis=1).ravel()

        rank = (np.array(at)[:, None] + self._shape.stages * copies).ravel()
        peers = np.where(np.array(peer)[:, None] < 0, NONE, np.array(peer)[:, None] + self._shape.stages * copies).ravel()
        starts, ends = np.rint(np.stack(start)).ravel(), np.rint(np.stack(end)).ravel()
        values: dict[str, Array] = {
            "start_ns": starts, "duration_ns": ends - starts, "bytes": spread(size), "step": np.full(len(rank), self._step),
            "sequence": spread(sequence), "peer": peers, "micro_batch": spread(micro_batch), "stage": spread(stage),
            "name": spread([STRINGS.index(text) for text in name]), "group": spread([STRINGS.index(text) for text in group]),
            "kind": spread(kind), "lane": spread([LANE_OF[one] for one in kind]),
        }
        order = np.lexsort((ends, rank))
        return rank[order], {key: values[key][order].astype(dtype) for key, dtype in SPAN_COLUMNS}


def steps(shape: Shape, count: int, seed: int = 1) -> Iterator[list[Frame]]:
    """For each step one frame of every rank, its sequence number the step's number from 1."""
    dice = np.random.default_rng(seed)
    before = np.zeros(shape.ranks, np.int64)
    zero = np.zeros((shape.stages, shape.copies))
    for step in range(count):
        rows = _Rows(shape, step)
        zero = _step(rows, shape, dice, zero, step)
        rank, columns = rows.columns()
        bounds = np.searchsorted(rank, np.arange(shape.ranks + 1))
        frames = []
        for number in range(shape.ranks):
            part = slice(bounds[number], bounds[number + 1])
            counters = empty(COUNTER_COLUMNS, 1 if number == shape.ranks - 1 else 0)
            if len(counters["step"]):
                counters["step"][:], counters["value"][:], counters["name"][:] = step, 4 / (step + 1), len(STRINGS)
            frames.append(Frame(
                rank=number, sequence=step + 1, spans={key: column[part] for key, column in columns.items()},
                counters=counters, marks=empty(MARK_COLUMNS), strings=[*STRINGS, "loss"], spans_before=int(before[number]),
                clock_uncertainty_ns=5_000.0, final=step == count - 1,
            ))
            before[number] += part.stop - part.start
        yield frames


def _step(rows: _Rows, shape: Shape, dice: np.random.Generator, zero: Array, step: int) -> Array:
    """Adds a step that begins at `zero` [stage, copy]; returns when each rank ends it."""
    m = shape.micro_batches

    def lasting(mean_ns: float, *size: int) -> Array:
        return mean_ns * np.maximum(0.2, 1 + JITTER * dice.standard_normal((*size, shape.copies)))

    loaded = zero + lasting(DATA_NS, shape.stages)
    free = loaded.copy()
    for kind, mean_ns, letter in ((Kind.FORWARD, FORWARD_NS, "F"), (Kind.BACKWARD, BACKWARD_NS, "B")):
        order = range(shape.stages) if kind == Kind.FORWARD else range(shape.stages - 1, -1, -1)
        work, transfer = lasting(mean_ns, m, shape.stages), lasting(TRANSFER_NS, m, shape.stages)
        arrived: list[tuple[Array, Array]] = []
        for stage in order:
            source = stage - 1 if kind == Kind.FORWARD else stage + 1
            sent: list[tuple[Array, Array]] = []
            for batch in range(m):
                begin = free[stage].copy()
                if arrived:
                    waits_until = np.maximum(arrived[batch][1], begin + 1)
                    rows.add(Kind.RECEIVE, stage, arrived[batch][0], arrived[batch][1], batch, stage, source, TENSOR_BYTES,
                             step * m + batch, group="pp")
                    rows.add(Kind.WAIT, stage, begin, waits_until, batch, stage, source)
                    begin = waits_until
                end = begin + work[batch, stage]
                rows.add(kind, stage, begin, end, batch, stage, name=f"{letter}{batch % 8}")
                free[stage] = end
                target = stage + 1 if kind == Kind.FORWARD else stage - 1
                if 0 <= target < shape.stages:
                    begin = np.maximum(end, sent[-1][1]) if sent else end
                    sent.append((begin, begin + transfer[batch, stage]))
                    rows.add(Kind.SEND, stage, *sent[-1], batch, target, target, TENSOR_BYTES, step * m + batch, group="pp")
            arrived = sent
    return _average(rows, shape, lasting, zero, loaded, free, step)


def _average(rows: _Rows, shape: Shape, lasting: Any, zero: Array, loaded: Array, drained: Array, step: int) -> Array:
    """Buckets' AllReduce between copies: all end together, once the last has come; then the optimizer."""
    end = drained
    for bucket in range(BUCKETS):
        begin = end + lasting(2_000, shape.stages)
        end = np.repeat(begin.max(axis=1, keepdims=True), shape.copies, axis=1) + lasting(REDUCE_NS, shape.stages)[:, :1]
        for stage in range(shape.stages):
            rows.add(Kind.ALL_REDUCE, stage, begin[stage], end[stage], size=BUCKET_BYTES, sequence=step * BUCKETS + bucket,
                     name="all-reduce", group="dp")
    done = end + lasting(OPTIMIZER_NS, shape.stages)
    for stage in range(shape.stages):
        rows.add(Kind.DATA, stage, zero[stage], loaded[stage], name="data")
        rows.add(Kind.OPTIMIZER, stage, end[stage], done[stage], name="adam")
        rows.add(Kind.STEP, stage, loaded[stage], done[stage], name="step")
    return done + 1_000
