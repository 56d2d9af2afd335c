"""Reads a run's store, while it grows or long after."""

from __future__ import annotations

import logging
import math
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from trainer.trace import journal, manifest, segments
from trainer.trace.columns import Strings
from trainer.trace.frame import COUNTER_COLUMNS, MARK_COLUMNS, SPAN_COLUMNS, Columns, Frame, empty, encode
from trainer.trace.manifest import SEGMENTS, Manifest, Segment, journal_file
from trainer.trace.segments import BrokenSegment, RankPart

log = logging.getLogger(__name__)

SILENT_SEGMENTS = 8  # a rank of which these tell nothing is not waited for


class StoreReader:
    """The store as its manifest named it when this reader was made.

    Given an older reader of the same folder, only what came since is read: its cost does not grow with the run.
    """

    def __init__(self, folder: Path, older: StoreReader | None = None):
        self.folder = folder
        self.manifest: Manifest = manifest.load(folder)
        valid = self.manifest.journals.get(SEGMENTS, 0)
        known: list[Segment] = []
        read_to = older.manifest.journals.get(SEGMENTS, 0) if older else 0
        if older and read_to <= valid:
            known = older.segments
        else:
            read_to = 0
        new = manifest.segments(folder, read_to, valid)
        self.segments: list[Segment] = known + new
        rows = [(segment.start_ns, segment.end_ns, segment.spans, segment.zoom_bits) for segment in new]
        extents = np.array(rows, np.int64).reshape(-1, 4).T
        if older is not None and known:
            extents = np.concatenate([older.extents, extents], axis=1)
        self.extents: np.ndarray[Any, Any] = extents  # of all segments: start_ns, end_ns, spans, zoom_bits

    @cached_property
    def settled_ns(self) -> float:
        """Whatever ended before this time is here: every rank that goes on has told of it. Infinity once the run is complete."""
        if self.manifest.complete:
            return math.inf
        going_on = {rank for rank, totals in self.manifest.ranks.items() if not totals.final}
        written: dict[int, float] = {}
        for segment in self.segments[: -SILENT_SEGMENTS - 1 : -1]:
            if written.keys() >= going_on:
                break
            try:
                parts = self.parts(segment)
            except BrokenSegment as broken:
                log.error("a segment does not tell how far its ranks were: %s", broken)
                continue
            for rank in going_on & parts.keys():
                written.setdefault(rank, parts[rank].written_ns)
        return min(written.values(), default=-math.inf)

    def frames(self, after_segment: int, max_bytes: int) -> tuple[int, list[bytes]]:
        """(last segment sent, frames) of whole segments after `after_segment`, up to about `max_bytes`, at least one segment.

        Each rank's share of a segment is one frame with the last sequence number that it holds. Whoever drops
        frames whose number is not above the rank's last therefore loses and doubles nothing when the live
        stream follows, also where both hold the same spans. Spans are in the order of recording: who has a part
        of such a frame skips as many as it has beyond the frame's `spans_before`. A segment that is broken is
        passed over; the next frame's `spans_before` tells its receiver how much is missing.
        """
        sent: list[bytes] = []
        total, last = 0, after_segment
        for segment in self.segments[after_segment:]:
            try:
                of_segment = [encode(frame) for frame in self.segment_frames(segment)]
            except BrokenSegment as broken:
                log.error("a segment is not served: %s", broken)
                of_segment = []
            size = sum(map(len, of_segment))
            if sent and total + size > max_bytes:
                break
            sent += of_segment
            total, last = total + size, segment.number
        pa.default_memory_pool().release_unused()  # a server that read segments for one viewer keeps none of it
        return last, sent

    def segment_frames(self, segment: Segment) -> list[Frame]:
        """One frame a rank. BrokenSegment if its file is not what was sealed."""
        table = segments.read(self.folder, segment)
        spans = segments.by_rank(table)
        counters, marks = self._rows("counters", *segment.counters), self._rows("marks", *segment.marks)
        frames = []
        for rank, part in segments.parts(table).items():
            columns, texts = spans.get(rank, (empty(SPAN_COLUMNS), []))
            strings = Strings()
            moved = strings.places(texts)  # texts of a segment are unique but for the two columns' own tables
            for name in segments.TEXTS:
                columns[name] = moved[columns[name]] if len(texts) else columns[name]
            frames.append(Frame(
                rank=rank, sequence=part.sequence, spans=columns,
                counters=_counters([row for row in counters if row[0] == rank], strings),
                marks=_marks([row for row in marks if row[0] == rank], strings),
                strings=strings.table, spans_before=part.spans_before, spans_dropped=part.spans_dropped,
                clock_offset_ns=part.clock_offset_ns, clock_uncertainty_ns=part.clock_uncertainty_ns,
                written_ns=part.written_ns, final=part.final,
            ))
        return frames

    def parts(self, segment: Segment) -> dict[int, RankPart]:
        """Each rank's share of the segment. BrokenSegment if its file is not what was sealed."""
        return segments.parts(segments.read(self.folder, segment, ["rank"]))

    def steps(self) -> list[dict[str, Any]]:
        """The figures of every step, in the steps' order."""
        rows = {row["step"]: row for row in self._all("steps")}
        return [rows[step] for step in sorted(rows)]

    def counters(self, name: str) -> Columns:
        """The columns rank, time_ns, value and step of one counter, in the order of time."""
        rows = sorted((row[:4] for row in self._all("counters") if row[4] == name), key=lambda row: row[1])
        columns = zip(*rows, strict=True) if rows else [()] * 4
        dtypes = {"rank": np.int32, "time_ns": np.float64, "value": np.float64, "step": np.int32}
        return {key: np.array(column, dtype) for (key, dtype), column in zip(dtypes.items(), columns, strict=True)}

    def marks(self) -> list[dict[str, Any]]:
        return [dict(zip(("rank", "time_ns", "step", "kind", "text"), row, strict=True)) for row in self._all("marks")]

    def _all(self, name: str) -> list[Any]:
        return self._rows(name, 0, self.manifest.journals.get(name, 0))

    def _rows(self, name: str, start: int, end: int) -> list[Any]:
        return journal.read(journal_file(self.folder, name), start, end)


def _counters(rows: list[list[Any]], strings: Strings) -> Columns:
    if not rows:
        return empty(COUNTER_COLUMNS)
    _, time_ns, value, step, name = zip(*rows, strict=True)
    return {"time_ns": np.array(time_ns), "value": np.array(value), "step": np.array(step), "name": strings.places(name)}


def _marks(rows: list[list[Any]], strings: Strings) -> Columns:
    if not rows:
        return empty(MARK_COLUMNS)
    _, time_ns, step, kind, text = zip(*rows, strict=True)
    return {"time_ns": np.array(time_ns), "step": np.array(step), "kind": strings.places(kind), "text": strings.places(text)}
