"""Writes a run's store: takes frames as they come, seals them in segments."""

from __future__ import annotations

import logging
import sqlite3
import time
import zlib
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from trainer.trace import checksum, journal, manifest, segments, zoom
from trainer.trace.frame import Columns, Frame
from trainer.trace.manifest import SEGMENTS, RankTotals, Segment, journal_file
from trainer.trace.pyramid import PyramidWriter
from trainer.trace.segments import BrokenSegment, RankPart, segment_file

log = logging.getLogger(__name__)

MOST_SPANS = 65_536  # of one segment: 4 MB as frames, the most that a viewer of its history gets at once
LEAST_AGE_SECONDS = 5.0
# A segment may hold this share of the run so far: a day's run has hundreds of segments, not thousands.
AGE_SHARE = 0.01


class StoreWriter:
    """One process writes a store at a time. After a crash a new writer goes on from the manifest:
    give it again, in the stream's order, what had not been sealed; what it knows it passes over.
    """

    def __init__(self, folder: Path, most_spans: int = MOST_SPANS, least_age_seconds: float = LEAST_AGE_SECONDS):
        self.folder = folder
        self._most_spans, self._least_age_seconds = most_spans, least_age_seconds
        folder.mkdir(parents=True, exist_ok=True)
        self.manifest = manifest.load(folder)
        self._remove_unfinished()
        self._pyramid = PyramidWriter(folder)
        self._zoom_out()
        self.ranks = {rank: replace(totals) for rank, totals in self.manifest.ranks.items()}  # with what waits
        self.bad_frames = self.manifest.bad_frames
        self._start_waiting()

    def _start_waiting(self) -> None:
        self._waiting: list[Frame] = []
        self._parts: dict[int, RankPart] = {}
        self._steps: list[dict[str, Any]] = []
        self._first_id = self._last_id = ""
        self._waiting_spans = 0
        self._waiting_since: float | None = None

    @property
    def spans(self) -> int:
        """Sealed or waiting."""
        return sum(totals.stored for totals in self.ranks.values())

    @property
    def dropped_spans(self) -> int:
        return sum(totals.lost for totals in self.ranks.values())

    def add(self, frame: Frame, stream_id: str) -> int | None:
        """Take a frame; how many frames of its rank are missing before it, or None if it was here already.

        BrokenFrame if it holds what cannot be; then nothing has changed.
        """
        segments.check(frame)
        totals = self.ranks.setdefault(frame.rank, RankTotals())
        if frame.sequence <= totals.sequence:
            self.passed(stream_id)
            return None
        missing, spans = frame.sequence - totals.sequence - 1, len(frame.spans["kind"])
        totals.sequence, totals.recorded = frame.sequence, frame.spans_before + spans
        totals.stored += spans
        totals.dropped, totals.clock_uncertainty_ns = frame.spans_dropped, frame.clock_uncertainty_ns
        totals.missing_frames += missing
        totals.recorded_checksum = frame.checksum
        totals.final |= frame.final
        part = self._parts.setdefault(frame.rank, RankPart(0, spans_before=frame.spans_before))
        part.sequence, part.final = frame.sequence, part.final or frame.final
        part.spans += spans
        part.missing_frames += missing
        part.spans_dropped, part.written_ns = frame.spans_dropped, frame.written_ns
        part.clock_offset_ns, part.clock_uncertainty_ns = frame.clock_offset_ns, frame.clock_uncertainty_ns
        self._waiting.append(frame)
        self._waiting_spans += spans
        self.passed(stream_id)
        return missing

    def passed(self, stream_id: str) -> None:
        """An entry of the stream is dealt with."""
        self._first_id, self._last_id = self._first_id or stream_id, stream_id
        if self._waiting_since is None:
            self._waiting_since = time.monotonic()

    def add_bad(self, stream_id: str) -> None:
        self.bad_frames += 1
        self.passed(stream_id)

    def add_steps(self, rows: list[dict[str, Any]]) -> None:
        """Figures of steps; a step that comes twice counts as it came last."""
        self._steps += rows

    @property
    def is_full(self) -> bool:
        """Seal before adding more."""
        return self._waiting_spans >= self._most_spans

    @property
    def is_due(self) -> bool:
        if self._waiting_since is None:
            return False
        run_seconds = (self.manifest.end_ns - self.manifest.start_ns) / 1e9
        age_seconds = time.monotonic() - self._waiting_since
        return self.is_full or age_seconds >= max(self._least_age_seconds, AGE_SHARE * run_seconds)

    def seal(self, complete: bool = False) -> None:
        """Put on disk all that waits. If that fails, all still waits and the store is as it was."""
        new = replace(
            self.manifest,
            ranks={rank: replace(totals) for rank, totals in self.ranks.items()},
            journals=dict(self.manifest.journals),
            sealed_through=self._last_id or self.manifest.sealed_through,
            bad_frames=self.bad_frames,
            complete=self.manifest.complete or complete,
        )
        segment, spans = None, None
        if self._waiting:
            data, spans = segments.to_parquet(self._waiting, self._parts)
            counters = self._append("counters", new.journals, _counter_rows(self._waiting))
            marks = self._append("marks", new.journals, _mark_rows(self._waiting))
            segment = self._segment(data, spans, counters, marks)
            manifest.write_whole(segment_file(self.folder, segment.number), data)
            self._append(SEGMENTS, new.journals, [asdict(segment)])
            new = new.with_segment(segment)
            for rank, total in checksum.by_rank(spans).items():
                new.ranks[rank].checksum = checksum.added(new.ranks[rank].checksum, total)
        self._append("steps", new.journals, self._steps)
        manifest.save(new, self.folder)
        self.manifest = new
        for rank, totals in new.ranks.items():
            self.ranks[rank].checksum = totals.checksum
        self._start_waiting()
        self._zoom_out(segment, spans)

    def _append(self, name: str, lengths: dict[str, int], rows: list[Any]) -> tuple[int, int]:
        start = lengths.get(name, 0)
        lengths[name] = journal.append(journal_file(self.folder, name), start, rows)
        return start, lengths[name]

    def _segment(self, data: bytes, spans: Columns, counters: tuple[int, int], marks: tuple[int, int]) -> Segment:
        start, end, steps = spans["start_ns"], spans["start_ns"] + spans["duration_ns"], spans["step"][spans["step"] >= 0]
        start_ns, end_ns = (int(start.min()), int(end.max())) if len(start) else (0, 0)
        return Segment(
            number=self.manifest.segments + 1,
            spans=len(start),
            start_ns=start_ns,
            end_ns=end_ns,
            first_step=int(steps.min()) if len(steps) else -1,
            last_step=int(steps.max()) if len(steps) else -1,
            first_id=self._first_id,
            last_id=self._last_id,
            counters=counters,
            marks=marks,
            zoom_bits=zoom.bits_for(spans),
            file_bytes=len(data),
            crc32=zlib.crc32(data),
        )

    def _zoom_out(self, newest: Segment | None = None, spans: Columns | None = None) -> None:
        """Add to the zoom levels the newest segment and what they lack from before; what fails now is made up for later."""
        try:
            self._pyramid.open(self.manifest.segments)
            behind = self.manifest.segments - self._pyramid.segments
            if newest is not None and spans is not None and behind == 1:
                self._pyramid.add(newest, lambda: spans)
            elif behind:
                known = manifest.segments(self.folder, 0, self.manifest.journals[SEGMENTS])
                for segment in known[self._pyramid.segments :]:
                    self._pyramid.add(segment, partial(self._zoomed, segment))
            if self.manifest.complete:
                self._pyramid.close()
        except (OSError, sqlite3.Error) as error:
            log.warning("%s: the zoom levels do not reach segment %s yet: %s", self.folder, self.manifest.segments, error)

    def _zoomed(self, segment: Segment) -> Columns:
        columns = ["rank", "kind", "start_ns", "duration_ns"]
        try:
            return segments.numbers(segments.read(self.folder, segment, columns))
        except BrokenSegment as broken:  # what is left of the run can be seen all the same
            log.error("the zoom levels lack a segment: %s", broken)
            return {name: np.zeros(0, np.int64) for name in columns}

    def _remove_unfinished(self) -> None:
        """What a writer that was killed left beside what the manifest names."""
        for path in self.folder.iterdir():
            number = path.name.split(".")[0]
            is_unknown = path.suffix == ".parquet" and number.isdigit() and int(number) > self.manifest.segments
            if path.suffix == ".part" or is_unknown:
                log.info("removing %s: its writing was interrupted", path)
                path.unlink()


def _counter_rows(frames: list[Frame]) -> list[list[Any]]:
    """rank, time_ns, value, step, name"""
    return [
        [frame.rank, time_ns, value, step, frame.strings[name]]
        for frame in frames
        for time_ns, value, step, name in _rows(frame.counters, "time_ns", "value", "step", "name")
    ]


def _mark_rows(frames: list[Frame]) -> list[list[Any]]:
    """rank, time_ns, step, kind, text"""
    return [
        [frame.rank, time_ns, step, frame.strings[kind], frame.strings[text]]
        for frame in frames
        for time_ns, step, kind, text in _rows(frame.marks, "time_ns", "step", "kind", "text")
    ]


def _rows(table: Columns, *names: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(table[name].tolist() for name in names), strict=True)
