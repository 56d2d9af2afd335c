"""Writes a run's store: takes frames as they come, seals them in segments."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainer.trace import journal, manifest, segments, zoom
from trainer.trace.frame import Columns, Frame
from trainer.trace.manifest import Manifest, RankPart, RankTotals, Segment

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
        old = self.manifest
        lengths, new_segments = dict(old.journals), []
        if self._waiting:
            data, spans = segments.to_parquet(self._waiting)
            counters = self._append("counters", lengths, _counter_rows(self._waiting))
            marks = self._append("marks", lengths, _mark_rows(self._waiting))
            segment = self._segment(spans, counters, marks)
            manifest.write_whole(zoom_file(self.folder, segment.number), zoom.to_parquet(zoom.cells(spans)))
            manifest.write_whole(segment_file(self.folder, segment.number), data)
            new_segments = [segment]
        self._append("steps", lengths, self._steps)
        new = Manifest(
            segments=old.segments + new_segments,
            ranks={rank: replace(totals) for rank, totals in self.ranks.items()},
            journals=lengths,
            sealed_through=self._last_id or old.sealed_through,
            bad_frames=self.bad_frames,
            complete=old.complete or complete,
        )
        manifest.save(new, self.folder)
        self.manifest = new
        self._start_waiting()

    def _append(self, name: str, lengths: dict[str, int], rows: list[Any]) -> tuple[int, int]:
        start = lengths.get(name, 0)
        lengths[name] = journal.append(journal_file(self.folder, name), start, rows)
        return start, lengths[name]

    def _segment(self, spans: Columns, counters: tuple[int, int], marks: tuple[int, int]) -> Segment:
        start, end, steps = spans["start_ns"], spans["start_ns"] + spans["duration_ns"], spans["step"][spans["step"] >= 0]
        return Segment(
            number=len(self.manifest.segments) + 1,
            spans=len(start),
            start_ns=int(start.min()) if len(start) else 0,
            end_ns=int(end.max()) if len(start) else 0,
            first_step=int(steps.min()) if len(steps) else -1,
            last_step=int(steps.max()) if len(steps) else -1,
            first_id=self._first_id,
            last_id=self._last_id,
            ranks=self._parts,
            counters=counters,
            marks=marks,
        )

    def _remove_unfinished(self) -> None:
        """What a writer that was killed left beside what the manifest names."""
        known = {segment.number for segment in self.manifest.segments}
        for path in self.folder.iterdir():
            number = path.name.split(".")[0]
            if path.suffix == ".part" or (path.suffix == ".parquet" and number.isdigit() and int(number) not in known):
                log.info("removing %s: its writing was interrupted", path)
                path.unlink()


def segment_file(folder: Path, number: int) -> Path:
    return folder / f"{number:06}.spans.parquet"


def zoom_file(folder: Path, number: int) -> Path:
    return folder / f"{number:06}.zoom.parquet"


def journal_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.jsonl"


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
