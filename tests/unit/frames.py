"""Frames for tests: as ranks make them, at random but for a seed, and as a pipeline makes them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from trainer.trace import columns
from trainer.trace.columns import CounterRow, MarkRow, Strings
from trainer.trace.frame import Frame
from trainer.trace.kinds import Kind
from trainer.trace.row import Row
from trainer.trace.store import StoreReader, StoreWriter

Span = tuple[object, ...]


def frame_of(
    rank: int, sequence: int, rows: list[Row], before: int = 0, counters: list[CounterRow] | None = None,
    marks: list[MarkRow] | None = None, **fields: object,
) -> Frame:
    """A frame of rows whose times are on the run's clock already."""
    strings = Strings()
    return Frame(
        rank=rank, sequence=sequence, spans=columns.spans(rows, strings, as_it_is),
        counters=columns.counters(counters or [], strings, as_it_is), marks=columns.marks(marks or [], strings, as_it_is),
        strings=strings.table, spans_before=before, **fields,  # type: ignore[arg-type]
    )


def stored(folder: Path, frames: Iterable[Frame], seal_every: int) -> StoreReader:
    """A complete store of these frames, so many in a segment."""
    writer = StoreWriter(folder)
    for place, frame in enumerate(frames, 1):
        writer.add(frame, f"{place}-0")
        if place % seal_every == 0:
            writer.seal()
    writer.seal(complete=True)
    return StoreReader(folder)


def as_it_is(times_ns: np.ndarray) -> np.ndarray:
    return times_ns


def random_row(dice: random.Random, after_ns: int = 0) -> Row:
    start = after_ns + dice.randrange(0, 3_000_000)
    return (
        dice.choice(list(Kind)), start, start + dice.choice([0, 1, dice.randrange(60_000_000)]), dice.randrange(-1, 2**31 - 1),
        dice.randrange(-1, 4096), dice.randrange(-1, 1024), dice.randrange(-1, 1024), dice.choice([-1, 0, dice.randrange(2**40)]),
        dice.randrange(-1, 2**31 - 1), dice.choice(["F0", "B7", "größer 🚀", ""]), dice.choice(["", "dp", "pp"]),
    )


def random_frames(dice: random.Random, rank: int, count: int, most_spans: int = 40) -> list[Frame]:
    """A rank's first frames, numbered from 1."""
    frames, before, now_ns = [], 0, 0
    for sequence in range(1, count + 1):
        rows = []
        for _ in range(dice.randrange(most_spans + 1)):
            rows.append(random_row(dice, now_ns))
            now_ns = rows[-1][2]
        counters = [("loss", dice.random(), dice.randrange(100), now_ns) for _ in range(dice.randrange(3))]
        marks = [("note", dice.choice(["a", "b"]), -1, now_ns)] * dice.randrange(2)
        fields = {"final": sequence == count, "clock_uncertainty_ns": rank + 0.5}
        frames.append(frame_of(rank, sequence, rows, before, counters, marks, **fields))
        before += len(rows)
    return frames


def spans_of(frame: Frame) -> list[Span]:
    """The spans as plain tuples with their rank and text, in their order."""
    table = frame.spans
    numbers = [table[name].tolist() for name in table if name not in ("name", "group")]
    texts = [[frame.strings[place] for place in table[name].tolist()] for name in ("name", "group")]
    return [(frame.rank, *values) for values in zip(*numbers, *texts, strict=True)]


def shuffled(dice: random.Random, ranks: int = 4, count: int = 12) -> list[Frame]:
    """The frames of several ranks, each rank's in order."""
    queues = [random_frames(dice, rank, count) for rank in range(ranks)]
    frames = []
    while any(queues):
        frames.append(dice.choice([queue for queue in queues if queue]).pop(0))
    return frames


def all_spans(frames: list[Frame]) -> list[Span]:
    return sorted(span for frame in frames for span in spans_of(frame))


def same(one: Frame, other: Frame) -> bool:
    """Whether two frames say the same in every column and field."""
    tables = all(
        np.array_equal(getattr(one, table)[name], getattr(other, table)[name])
        for table in ("spans", "counters", "marks") for name in getattr(one, table)
    )
    fields = ("rank", "sequence", "strings", "spans_before", "spans_dropped", "clock_offset_ns", "clock_uncertainty_ns",
              "written_ns", "final", "checksum")
    return tables and all(getattr(one, name) == getattr(other, name) for name in fields)


def gpipe_rows(
    rank: int, step: int, ranks: int = 4, micro_batches: int = 8, forward_ns: int = 20, backward_ns: int = 40
) -> list[Row]:
    """What one stage does in a step of GPipe without communication, its STEP span last."""
    length = (ranks + micro_batches - 1) * (forward_ns + backward_ns)
    zero = step * length
    turn = zero + (ranks + micro_batches - 1) * forward_ns
    rows: list[Row] = []
    for m in range(micro_batches):
        start = zero + (rank + m) * forward_ns
        rows.append((Kind.FORWARD, start, start + forward_ns, step, m, rank, -1, -1, -1, f"F{m}", ""))
    for m in range(micro_batches):
        start = turn + (ranks - 1 - rank + m) * backward_ns
        rows.append((Kind.BACKWARD, start, start + backward_ns, step, m, rank, -1, -1, -1, f"B{m}", ""))
    rows.append((Kind.STEP, zero, zero + length, step, -1, -1, -1, -1, -1, f"step {step}", ""))
    return rows
