"""One run as the recorder holds it: its store, its figures, and the stream entries that are not sealed yet."""

from __future__ import annotations

import json
import logging
from functools import cached_property
from pathlib import Path
from typing import Any

from dashboard.runs import pictures
from trainer.grid import Grid
from trainer.schedules.theory import bubble_share
from trainer.spec import JobSpec
from trainer.step_time import step_ms
from trainer.trace.frame import BrokenFrame, Frame, decode
from trainer.trace.run_figures import RunFigures
from trainer.trace.step_figures import StepFigures
from trainer.trace.store import StoreReader, StoreWriter
from trainer.trace.stream import EVENT, FRAME
from workers.tally import Tally

log = logging.getLogger(__name__)


class RunRecorder:
    """Takes the stream's entries in order; those it took before, in this life or an earlier one, change nothing."""

    def __init__(self, run_id: str, spec: JobSpec, folder: Path):
        self.run_id = run_id
        self.has_ended = False  # its end event was taken
        self.unsealed: dict[bytes, None] = {}  # ids of entries to acknowledge once they are sealed
        self._spec = spec
        self._store = StoreWriter(folder)
        self._figures = RunFigures()
        self._realtime: dict[int, str] = {}
        self._zero_unix_ns = ""
        self._restarts: set[str] = set()  # what marks of them say: each rank makes one
        self._rows: list[dict[str, Any]] = []  # step rows that nobody was told yet
        self._steps = self._restored_steps()

    def _restored_steps(self) -> StepFigures:
        """Figures of steps that were open when the recorder before this one ended, from what it had sealed."""
        reader = StoreReader(self._store.folder)
        rows = reader.steps()
        for row in rows:
            self._figures.add(row)
        for mark in reader.marks():
            self._take_mark(mark["rank"], mark["kind"], mark["text"])
            if mark["kind"] == "restart":
                self._restarts.add(mark["text"])
        ends = [row["end_ns"] for row in rows if row["end_ns"] is not None]
        next_step = rows[-1]["step"] + 1 if rows else 0
        steps = StepFigures(self._spec.ranks, next_step, ends[-1] if ends else None, Grid.of(self._spec.grid))
        for segment in reader.segments:
            if segment.last_step >= steps.next_step:
                parts = reader.parts(segment)
                for frame in reader.segment_frames(segment):
                    steps.add(frame, gap=parts[frame.rank].missing_frames > 0)
        for rank, totals in reader.manifest.ranks.items():
            if totals.final:
                steps.leave(rank)
        return steps

    def take(self, entry_id: bytes, fields: dict[bytes, bytes]) -> None:
        """Whatever the entry holds, it is dealt with afterwards; what is broken is counted and logged."""
        self.unsealed[entry_id] = None
        where = entry_id.decode()
        try:
            if FRAME in fields:
                self._take_frame(decode(fields[FRAME]), where)
            else:
                self._take_event(fields, where)
        except Exception as error:  # nothing in a stream may stop the recorder
            log.log(
                logging.WARNING if isinstance(error, ValueError) else logging.ERROR,
                "run %s: entry %s is passed over: %s", self.run_id, where, error, exc_info=not isinstance(error, ValueError),
            )
            self._store.add_bad(where)

    def _take_frame(self, frame: Frame, where: str) -> None:
        if frame.rank >= self._spec.ranks:
            raise BrokenFrame(f"rank {frame.rank} is outside a run of {self._spec.ranks} ranks")
        missing = self._store.add(frame, where)
        if missing is None:
            return
        if missing:
            log.warning("run %s: rank %s lacks %s frames before number %s", self.run_id, frame.rank, missing, frame.sequence)
        marks = [(frame.strings[kind], frame.strings[text], step) for kind, text, step in zip(
            *(frame.marks[name].tolist() for name in ("kind", "text", "step")), strict=True)]
        for kind, text, step in marks:
            self._take_mark(frame.rank, kind, text)
            if kind == "restart" and text not in self._restarts:
                self._restarts.add(text)
                self._collect_rows()
                self._steps.begin_again(step)
        self._steps.add(frame, gap=missing > 0)

    def _take_event(self, fields: dict[bytes, bytes], where: str) -> None:
        self._store.passed(where)
        if EVENT in fields and json.loads(fields[EVENT])["type"] == "end":
            self.has_ended = True

    def _take_mark(self, rank: int, kind: str, text: str) -> None:
        if kind == "realtime":
            self._realtime[rank] = text
        elif kind == "zero":
            self._zero_unix_ns = text

    def _collect_rows(self, all_ended: bool = False) -> None:
        rows = self._steps.ready(all_ended)
        for row in rows:
            self._figures.add(row)
        self._store.add_steps(rows)
        self._rows += rows

    def new_rows(self) -> list[dict[str, Any]]:
        """Rows of steps that were closed since the last call."""
        self._collect_rows()
        rows, self._rows = self._rows, []
        return rows

    def close_steps(self) -> None:
        """The run has ended: steps that never closed get their row too, flagged."""
        self._collect_rows(all_ended=True)

    @property
    def tally(self) -> Tally:
        """Of what is sealed."""
        return Tally.of(self._store.manifest)

    @property
    def is_due(self) -> bool:
        return self._store.is_due

    @property
    def is_full(self) -> bool:
        return self._store.is_full

    @property
    def is_complete(self) -> bool:
        """All that is known of the run is sealed, its end as well."""
        return self._store.manifest.complete and not self.unsealed

    def seal(self, complete: bool = False) -> tuple[list[bytes], str]:
        """The entries that may be acknowledged now, and the one up to which the stream may be trimmed.

        One seal stays in the stream, for viewers who read the manifest before this one.
        """
        self._collect_rows()
        trim_to = self._store.manifest.sealed_through
        self._store.seal(complete)
        sealed, self.unsealed = list(self.unsealed), {}
        return sealed, trim_to

    def picture(self) -> bytes:
        return pictures.make(StoreReader(self._store.folder))

    @property
    def realtime(self) -> bool | None:
        """Whether every rank that asked for the real-time class was granted it; None where none asked."""
        answers = [text for text in self._realtime.values() if text != "not asked"]
        return all(text == "granted" for text in answers) if answers else None

    @cached_property
    def _step_seconds(self) -> float | None:
        planned_ms = step_ms(self._spec)
        return None if planned_ms is None else planned_ms / 1000

    def figures(self) -> dict[str, Any]:
        """Keys of `trainer.trace.figures.RUN_DEFINITIONS`."""
        return {
            "spans": self._store.spans,
            "dropped_spans": self._store.dropped_spans,
            "checked_ranks": sum(totals.is_checked for totals in self._store.manifest.ranks.values()),
            **self._figures.as_dict(),
            "bubble_share_theory": bubble_share(self._spec),
            "step_seconds_theory": self._step_seconds,
            "clock_uncertainty_ns": max((rank.clock_uncertainty_ns for rank in self._store.ranks.values()), default=None),
            "rank_clock_uncertainty_ns": [
                round(self._store.ranks[rank].clock_uncertainty_ns) if rank in self._store.ranks else None
                for rank in range(self._spec.ranks)
            ],
            "zero_unix_ns": self._zero_unix_ns or None,
        }
