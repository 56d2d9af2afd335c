"""What a run's store holds: written last and at once, so that whatever it names is whole."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

NAME = "manifest.json"
VERSION = 1


@dataclass
class RankPart:
    """One rank's share of one segment: its frames up to number `sequence`."""

    sequence: int
    spans: int = 0
    spans_before: int = 0  # recorded by the rank before this share
    spans_dropped: int = 0
    missing_frames: int = 0  # numbers that were skipped within or right before this share
    clock_offset_ns: float = 0.0
    clock_uncertainty_ns: float = 0.0
    written_ns: float = 0.0
    final: bool = False


@dataclass
class Segment:
    """Numbers count from 1. `counters` and `marks` are ranges of bytes in their journals."""

    number: int
    spans: int
    start_ns: int
    end_ns: int
    first_step: int
    last_step: int
    first_id: str
    last_id: str
    ranks: dict[int, RankPart]
    counters: tuple[int, int]
    marks: tuple[int, int]


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

    @property
    def lost(self) -> int:
        """Spans that the rank recorded and nobody will see."""
        return max(self.recorded - self.stored, self.dropped)


@dataclass
class Manifest:
    segments: list[Segment] = field(default_factory=list)
    ranks: dict[int, RankTotals] = field(default_factory=dict)
    journals: dict[str, int] = field(default_factory=dict)  # valid bytes of each
    sealed_through: str = "0-0"  # the stream's entries up to this one are in the segments
    bad_frames: int = 0
    complete: bool = False  # the run has ended and nothing more will come

    @property
    def spans(self) -> int:
        return sum(segment.spans for segment in self.segments)

    @property
    def dropped_spans(self) -> int:
        return sum(rank.lost for rank in self.ranks.values())

    @property
    def start_ns(self) -> int:
        return min((segment.start_ns for segment in self.segments if segment.spans), default=0)

    @property
    def end_ns(self) -> int:
        return max((segment.end_ns for segment in self.segments if segment.spans), default=0)


def load(folder: Path) -> Manifest:
    """The manifest in `folder`; an empty one if nothing has been sealed there yet."""
    try:
        given = json.loads((folder / NAME).read_text())
    except FileNotFoundError:
        return Manifest()
    if given.pop("version") != VERSION:
        raise ValueError(f"{folder / NAME} was written by another version of the store")
    given["ranks"] = {int(rank): RankTotals(**totals) for rank, totals in given["ranks"].items()}
    given["segments"] = [_segment(segment) for segment in given["segments"]]
    return Manifest(**given)


def _segment(given: dict[str, Any]) -> Segment:
    given["ranks"] = {int(rank): RankPart(**part) for rank, part in given["ranks"].items()}
    given["counters"], given["marks"] = tuple(given["counters"]), tuple(given["marks"])
    return Segment(**given)


def save(manifest: Manifest, folder: Path) -> None:
    text = json.dumps({"version": VERSION, **asdict(manifest)}, separators=(",", ":"))
    write_whole(folder / NAME, text.encode())


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
