"""The head of a run's store: written last and at once, so that whatever it names is whole.

It stays small however long the run: segments, steps, counters and marks are rows of journals that only
grow, and the head says how far each is valid.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, astuple, dataclass, field, replace
from pathlib import Path
from typing import Any

from trainer.trace import journal

NAME = "manifest.json"
VERSION = 2
SEGMENTS = "segments"


class ForeignStore(ValueError):
    """A file of the store is of another version, or something else altogether; the message names it."""


@dataclass
class Segment:
    """A row of the segments' journal. Numbers count from 1; `counters` and `marks` are ranges of bytes in their journals."""

    number: int
    spans: int
    start_ns: int
    end_ns: int
    first_step: int
    last_step: int
    first_id: str
    last_id: str
    counters: tuple[int, int]
    marks: tuple[int, int]
    zoom_bits: int  # its finest zoom level has cells of 2^zoom_bits ns
    file_bytes: int
    crc32: int  # of the file


@dataclass
class RankTotals:
    """What is known of one rank so far. `recorded` counts spans by the rank, `stored` those that came here."""

    sequence: int = 0
    recorded: int = 0
    stored: int = 0
    dropped: int = 0
    missing_frames: int = 0
    clock_uncertainty_ns: float = 0.0
    final: bool = False
    checksum: int = 0  # of the spans that are sealed
    recorded_checksum: int = 0  # of those that the rank recorded, as its latest frame said

    @property
    def is_checked(self) -> bool:
        """Whether exactly what the rank recorded is sealed."""
        return self.checksum == self.recorded_checksum

    @property
    def lost(self) -> int:
        """Spans that the rank recorded and nobody will see."""
        return max(self.recorded - self.stored, self.dropped)


@dataclass
class Manifest:
    segments: int = 0  # how many there are
    spans: int = 0
    start_ns: int = 0
    end_ns: int = 0
    ranks: dict[int, RankTotals] = field(default_factory=dict)
    journals: dict[str, int] = field(default_factory=dict)  # valid bytes of each
    sealed_through: str = "0-0"  # the stream's entries up to this one are in the segments
    bad_frames: int = 0
    complete: bool = False  # the run has ended and nothing more will come

    @property
    def dropped_spans(self) -> int:
        return sum(rank.lost for rank in self.ranks.values())

    def with_segment(self, segment: Segment) -> Manifest:
        """The same store with one segment more."""
        start_ns, end_ns = self.start_ns, self.end_ns
        if segment.spans:
            start_ns = min(start_ns, segment.start_ns) if self.spans else segment.start_ns
            end_ns = max(end_ns, segment.end_ns) if self.spans else segment.end_ns
        return replace(
            self, segments=segment.number, spans=self.spans + segment.spans, start_ns=start_ns, end_ns=end_ns
        )


def load(folder: Path) -> Manifest:
    """The head in `folder`; an empty one if nothing has been sealed there yet."""
    path = folder / NAME
    try:
        given = json.loads(path.read_text())
    except FileNotFoundError:
        return Manifest()
    except ValueError:
        raise ForeignStore(f"{path} is not a store's manifest") from None
    version = given.pop("version", None) if isinstance(given, dict) else None
    if version != VERSION:
        raise ForeignStore(f"{path} was written by another version of the store: {version}, not {VERSION}")
    given["ranks"] = {rank: RankTotals(*totals) for rank, *totals in given["ranks"]}
    return Manifest(**given)


def save(manifest: Manifest, folder: Path) -> None:
    ranks = [(rank, *astuple(totals)) for rank, totals in manifest.ranks.items()]
    fields: dict[str, Any] = {"version": VERSION, **asdict(replace(manifest, ranks={})), "ranks": ranks}
    write_whole(folder / NAME, json.dumps(fields, separators=(",", ":")).encode())


def segments(folder: Path, start: int, end: int) -> list[Segment]:
    """The segments whose rows lie between two places of their journal."""
    rows = journal.read(journal_file(folder, SEGMENTS), start, end)
    return [Segment(**{**row, "counters": tuple(row["counters"]), "marks": tuple(row["marks"])}) for row in rows]


def journal_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.jsonl"


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that after any interruption there is the old one or the new one, on disk."""
    unfinished = path.with_name(path.name + ".part")
    with unfinished.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
