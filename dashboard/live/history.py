"""What is sealed of a run, as batches for viewers. Everything here blocks: call it in a thread."""

from __future__ import annotations

import json
from typing import Any

from dashboard.live.cursor import AfterEntry, AfterSealed, id_of
from dashboard.live.handover import Sealed
from dashboard.live.messages import Batch
from dashboard.runs.stored import store_of
from trainer.trace.manifest import journal_file
from trainer.trace.store import StoreReader


class StoredHistory:
    def __init__(self, run_id: str):
        self._run_id = run_id
        self._read: tuple[StoreReader, Sealed] | None = None

    def sealed(self) -> Sealed:
        return self._look()[1]

    def batch(self, after: AfterSealed, most_bytes: int) -> Batch:
        """What follows: frames of whole segments, then steps' figures; an empty batch leads on to the stream."""
        reader, sealed = self._look()
        if after.segment < len(sealed.segments_through):
            last, frames = reader.frames(after.segment, most_bytes)
            return Batch(AfterSealed(last, after.steps_bytes), frames, merged=True)
        rows, read_to = self._steps(reader, after.steps_bytes, most_bytes)
        if rows:
            return Batch(AfterSealed(after.segment, read_to), events=[{"type": "steps", "rows": rows}])
        return Batch(AfterEntry(sealed.through))

    def _look(self) -> tuple[StoreReader, Sealed]:
        """The store as its manifest says now. Threads share what was read; it is replaced, never changed."""
        reader, known = store_of(self._run_id), self._read
        if known is None or known[0] is not reader:
            through = known[1].segments_through if known else ()
            through += tuple(id_of(segment.last_id) for segment in reader.segments[len(through) :])
            known = reader, Sealed(through, id_of(reader.manifest.sealed_through), reader.manifest.complete)
            self._read = known
        return known

    def _steps(self, reader: StoreReader, start: int, most_bytes: int) -> tuple[list[dict[str, Any]], int]:
        """Whole rows of the steps' journal from a place in it on, and the place after them."""
        valid = reader.manifest.journals.get("steps", 0)
        if start >= valid:
            return [], start
        with journal_file(reader.folder, "steps").open("rb") as file:
            file.seek(max(start - 1, 0))
            if start and file.read(1) != b"\n":
                return [], valid  # a place that no batch gave: there is nothing to go on from
            data = file.read(min(valid - start, most_bytes))
        end = data.rfind(b"\n") + 1
        return [json.loads(line) for line in data[:end].splitlines()], start + end
