"""A finished run of many spans, as the bytes that a page is sent of it; the same for the same seed."""

from __future__ import annotations

import numpy as np

from dashboard.live.cursor import AfterSealed
from dashboard.live.messages import Batch
from trainer.trace import frame as frames
from trainer.trace.kinds import Kind, Lane

_KINDS = np.array([Kind.FORWARD, Kind.BACKWARD_INPUT, Kind.BACKWARD_WEIGHT, Kind.OPTIMIZER], np.uint8)
_STEP_SPANS = 64
_SEGMENT_SPANS = 16_384  # of one rank in a sealed segment, about


def stored_run(ranks: int, spans: int, seed: int = 5) -> bytes:
    """One batch with all frames: durations from 20 µs to 2 ms, every third span after a gap of the same sort."""
    dice = np.random.default_rng(seed)
    made = [encoded for rank in range(ranks) for encoded in _rank(rank, spans // ranks, dice)]
    return Batch(AfterSealed(0), made, complete=True, merged=True).encode()


def _rank(rank: int, count: int, dice: np.random.Generator) -> list[bytes]:
    duration = 2e4 + 2e6 * dice.random(count) ** 3
    gap = np.where(np.arange(count) % 3 == 0, 2e6 * dice.random(count) ** 3, 0)
    start = np.cumsum(gap + duration) - duration
    number = np.arange(count)
    made = []
    for sequence, first in enumerate(range(0, count, _SEGMENT_SPANS), start=1):
        part = slice(first, min(first + _SEGMENT_SPANS, count))
        columns = frames.empty(frames.SPAN_COLUMNS, part.stop - part.start)
        columns["start_ns"], columns["duration_ns"] = start[part], duration[part]
        columns["kind"] = _KINDS[dice.integers(len(_KINDS), size=part.stop - part.start)]
        columns["lane"][:] = Lane.COMPUTE
        columns["step"] = number[part] // _STEP_SPANS
        columns["micro_batch"], columns["stage"][:] = number[part] % 8, rank
        for name in ("bytes", "sequence", "peer"):
            columns[name][:] = frames.NONE
        made.append(frames.encode(frames.Frame(
            rank=rank, sequence=sequence, spans=columns, counters=frames.empty(frames.COUNTER_COLUMNS),
            marks=frames.empty(frames.MARK_COLUMNS), strings=[""], spans_before=first, written_ns=float(start[part][-1]),
        )))
    return made
