"""Ranks that are emulated: one process sends what many would, as real frames into a real stream.

Each rank flushes every FLUSH_SECONDS what has ended by then, and no two at the same moment: a span waits for its flush
as long as a real rank's does, and its end on the run's clock is its true end.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dashboard.bench import synthetic
from dashboard.bench.synthetic import STRINGS, Shape
from trainer.trace import checksum
from trainer.trace.frame import COUNTER_COLUMNS, MARK_COLUMNS, SPAN_COLUMNS, Columns, Frame, empty, encode
from trainer.trace.stream import FRAME, frames_key

SHAPE = Shape(copies=8, stages=8)
FLUSH_SECONDS = 0.1
MOST_AT_ONCE = 64  # frames that one trip to Redis carries where the sender is behind


@dataclass(frozen=True)
class Flush:
    """A frame, and when it leaves: in seconds of the run's clock."""

    due_seconds: float
    frame: bytes


@dataclass
class _Rank:
    number: int
    frames: int = 0
    spans: int = 0
    checksum: int = 0
    waiting: list[Frame] | None = None

    def flush(self, until_ns: float, is_final: bool) -> bytes | None:
        """What ended by then as a frame, or nothing where nothing did."""
        parts, self.waiting = _cut(self.waiting or [], until_ns)
        if not parts and not is_final:
            return None
        spans = empty(SPAN_COLUMNS)
        if parts:
            spans = {key: np.concatenate([part.spans[key] for part in parts]) for key, _ in SPAN_COLUMNS}
        counters = [part.counters for part in parts if len(part.counters["step"])]
        self.frames += 1
        self.checksum = checksum.added(self.checksum, checksum.total(spans))
        frame = Frame(
            rank=self.number, sequence=self.frames, spans=spans, counters=counters[-1] if counters else empty(COUNTER_COLUMNS),
            marks=empty(MARK_COLUMNS), strings=[*STRINGS, "loss"], spans_before=self.spans, clock_uncertainty_ns=5_000.0,
            written_ns=until_ns, final=is_final, checksum=self.checksum,
        )
        self.spans += len(spans["kind"])
        return encode(frame)


def steps_in(shape: Shape, rate: float, seconds: float) -> int:
    """How many steps of `shape` are so many seconds at `rate` spans a second."""
    return max(1, round(rate * seconds / shape.spans_a_step))


def flushes(shape: Shape, rate: float, steps: int) -> Iterator[Flush]:
    """All of a run of `steps` steps, stretched so that it records about `rate` spans a second; in the order of sending."""
    ranks = [_Rank(number) for number in range(shape.ranks)]
    ranks[0].frames = 1  # `zero_frame` comes first
    made = _stretched(shape, rate, steps)
    reached_ns, is_over, tick = 0.0, False, -1
    while any(rank.waiting for rank in ranks) or not is_over:
        tick += 1
        while reached_ns <= (tick + 1) * FLUSH_SECONDS * 1e9 and not is_over:
            step = next(made, None)
            is_over = step is None
            for frame in step or []:
                ranks[frame.rank].waiting = [*(ranks[frame.rank].waiting or []), frame]
            if step:
                reached_ns = min(float(_ends(frame)[-1]) for frame in step)
        for rank in ranks:
            due_seconds = (tick + rank.number / shape.ranks) * FLUSH_SECONDS
            had_some = bool(rank.waiting)
            last_ns = float(_ends(rank.waiting[-1])[-1]) if rank.waiting else 0.0
            is_final = is_over and had_some and last_ns <= due_seconds * 1e9
            if (frame_bytes := rank.flush(due_seconds * 1e9, is_final)) is not None:
                yield Flush(due_seconds, frame_bytes)


def zero_frame(zero_unix_ns: int) -> bytes:
    """The first frame of rank 0: when the run's clock showed 0."""
    marks = empty(MARK_COLUMNS, 1)
    marks["step"][:], marks["kind"][:], marks["text"][:] = -1, 0, 1
    return encode(Frame(0, 1, empty(SPAN_COLUMNS), empty(COUNTER_COLUMNS), marks, ["zero", str(zero_unix_ns)]))


def send(client: Any, run_id: str, made: Iterable[Flush]) -> float:
    """Send each when it is due, the run's clock beginning now; by how many seconds the sender was late at most."""
    key, behind = frames_key(run_id), 0.0
    client.xadd(key, {FRAME: zero_frame(time.time_ns())})
    began, ready = time.monotonic(), list[Flush]()

    def leave() -> None:
        pipeline = client.pipeline(transaction=False)  # each rank sends its own, in no transaction with the others'
        for flush in ready:
            pipeline.xadd(key, {FRAME: flush.frame})
        pipeline.execute()
        ready.clear()

    for flush in made:
        wait_seconds = began + flush.due_seconds - time.monotonic()
        if ready and (wait_seconds > 0 or len(ready) >= MOST_AT_ONCE):
            leave()
            wait_seconds = began + flush.due_seconds - time.monotonic()
        if wait_seconds > 0:
            time.sleep(wait_seconds)
        else:
            behind = max(behind, -wait_seconds)
        ready.append(flush)
    leave()
    return behind


def _stretched(shape: Shape, rate: float, steps: int) -> Iterator[list[Frame]]:
    factor = 0.0
    for frames in synthetic.steps(shape, steps):
        factor = factor or shape.spans_a_step / rate * 1e9 / max(float(_ends(frame)[-1]) for frame in frames)
        for frame in frames:
            ends = np.rint(_ends(frame) * factor)
            frame.spans["start_ns"] = np.rint(frame.spans["start_ns"] * factor)
            frame.spans["duration_ns"] = ends - frame.spans["start_ns"]
        yield frames


def _ends(frame: Frame) -> Any:
    return frame.spans["start_ns"] + frame.spans["duration_ns"]


def _cut(frames: list[Frame], until_ns: float) -> tuple[list[Frame], list[Frame]]:
    """Of frames in the order of ends: what ended by then, and the rest."""
    for at, frame in enumerate(frames):
        count = int(np.searchsorted(_ends(frame), until_ns, side="right"))
        if count < len(frame.spans["kind"]):
            done = [*frames[:at], *([_part(frame, slice(count), False)] if count else [])]
            return done, [_part(frame, slice(count, None), True), *frames[at + 1 :]]
    return frames, []


def _part(frame: Frame, rows: slice, is_rest: bool) -> Frame:
    spans: Columns = {key: column[rows] for key, column in frame.spans.items()}
    counters = frame.counters if is_rest else empty(COUNTER_COLUMNS)
    return Frame(frame.rank, frame.sequence, spans, counters, frame.marks, frame.strings)
