"""A run's store as exports read it: piece by piece, never the whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboard.runs import kept
from dashboard.runs.models import Run
from trainer.spec import JobSpec
from trainer.trace.frame import Frame
from trainer.trace.store import StoreReader

Progress = Callable[[int, int], None]  # spans written, of how many


@dataclass(frozen=True)
class Source:
    """`state` is what the run's page begins with (runs.state.for_page)."""

    run: Run
    spec: JobSpec
    state: dict[str, Any]
    reader: StoreReader

    @classmethod
    def of(cls, run: Run, state: dict[str, Any], home: Path) -> Source:
        return cls(run, run.spec, state, StoreReader(kept.folder_of(home, run.pk)))

    @property
    def version(self) -> str:
        """Another one as soon as more of the run is sealed."""
        manifest = self.reader.manifest
        return f"{manifest.sealed_through} {manifest.complete}"

    @property
    def spans(self) -> int:
        return self.reader.manifest.spans

    @property
    def ranks(self) -> list[int]:
        return sorted(self.reader.manifest.ranks)

    def segments(self, progress: Progress) -> Iterator[list[Frame]]:
        """Each segment's frames, one a rank, its spans in the order of recording."""
        done = 0
        for segment in self.reader.segments:
            yield self.reader.segment_frames(segment)
            done += segment.spans
            progress(done, self.spans)

    def steps(self) -> Iterator[dict[str, Any]]:
        """The rows of steps in their order."""
        last = -1
        for row in self._journal("steps"):
            if row["step"] > last:
                last = row["step"]
                yield row

    def _journal(self, name: str) -> Iterator[Any]:
        """Rows of one of the store's journals, as far as the manifest says that it is valid."""
        left = self.reader.manifest.journals.get(name, 0)
        if not left:
            return
        with (self.reader.folder / f"{name}.jsonl").open("rb") as file:
            for line in file:
                left -= len(line)
                if left < 0:
                    return
                yield json.loads(line)
