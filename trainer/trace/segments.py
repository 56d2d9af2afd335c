"""A segment: many frames' spans as one Parquet file, and back to frames.

Spans are sorted by rank, lane and start; then the ordered columns grow in small steps, and packed deltas
under zstd take about 6.5 bytes a span, of which the two times take 5.6 (`manage.py bench ingest`). A span's
`ordinal` counts what its rank recorded before it, so the order of recording can be had again. The file says
of each rank's share what its frames said, so that they can be had again as one.
"""

from __future__ import annotations

import io
import json
import zlib
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trainer.trace.columns import LANES
from trainer.trace.frame import SPAN_COLUMNS, BrokenFrame, Columns, Frame
from trainer.trace.manifest import Segment

VERSION = 2
_VERSION_KEY, _RANKS_KEY = b"lockstep.segment", b"lockstep.ranks"

_LATEST_NS = 2.0**53  # beyond it float64 skips whole nanoseconds
_LONGEST_SUM_NS = 2.0**46  # 19 hours of spans in one flush: no clock was read rightly
_WHOLE_NUMBERS = ("start_ns", "duration_ns", "bytes")
TEXTS = ("name", "group")
NUMBERS = tuple(
    (name, np.int64 if name in _WHOLE_NUMBERS else np.dtype(dtype)) for name, dtype in SPAN_COLUMNS if name not in TEXTS
)
# In the order of rows these grow in small steps within a lane, or hold few values: packed deltas are smallest.
_DELTAS = dict.fromkeys(("ordinal", "start_ns", "duration_ns", "step", "sequence", "micro_batch"), "DELTA_BINARY_PACKED")


class BrokenSegment(ValueError):
    """A segment's file is missing, cut off, changed, or of another kind; the message names it."""


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


def check(frame: Frame) -> None:
    """BrokenFrame if the frame holds what no rank can have recorded."""
    spans = frame.spans
    for column in (spans["start_ns"], spans["duration_ns"], spans["bytes"]):
        if not (np.abs(column) < _LATEST_NS).all():  # false for NaN as well
            raise BrokenFrame("a time or a size is not a whole number below 2^53")
    if (spans["duration_ns"] < 0).any() or spans["duration_ns"].sum() > _LONGEST_SUM_NS:
        raise BrokenFrame("durations are negative, or longer than any run")
    if not (LANES[spans["kind"]] == spans["lane"]).all():
        raise BrokenFrame("a kind is not one of trainer.trace.kinds, or in another's lane")
    texts = len(frame.strings)
    for table, names in ((spans, TEXTS), (frame.counters, ("name",)), (frame.marks, ("kind", "text"))):
        for name in names:
            if len(table[name]) and int(table[name].max()) >= texts:
                raise BrokenFrame(f"a {name} is not in the frame's {texts} strings")


def to_parquet(frames: list[Frame], parts: dict[int, RankPart]) -> tuple[bytes, Columns]:
    """The file of all spans in `frames`, and its numbers in the file's order."""
    numbers: Columns = {
        name: np.concatenate([frame.spans[name] for frame in frames]).astype(dtype, copy=False) for name, dtype in NUMBERS
    }
    counts = np.array([len(frame.spans["kind"]) for frame in frames])
    firsts = np.cumsum(counts) - counts
    numbers["rank"] = np.repeat(np.array([frame.rank for frame in frames], np.int32), counts)
    before = np.array([frame.spans_before for frame in frames], np.int64)
    numbers["ordinal"] = np.repeat(before - firsts, counts) + np.arange(counts.sum())
    order = np.lexsort((numbers["start_ns"], numbers["lane"], numbers["rank"]))
    numbers = {name: column[order] for name, column in numbers.items()}
    texts, places = _merge_texts(frames)
    table = pa.table({
        "rank": numbers["rank"],
        "ordinal": numbers["ordinal"],
        **{name: numbers[name] for name, _ in NUMBERS},
        **{name: pa.DictionaryArray.from_arrays(places[name][order], pa.array(texts, pa.string())) for name in TEXTS},
    })
    shares = json.dumps([(rank, *astuple(part)) for rank, part in sorted(parts.items())], separators=(",", ":"))
    table = table.replace_schema_metadata({_VERSION_KEY: str(VERSION), _RANKS_KEY: shares})
    file = io.BytesIO()
    pq.write_table(
        table, file, compression="zstd", column_encoding=_DELTAS,
        use_dictionary=[name for name in table.column_names if name not in _DELTAS],
    )
    return file.getvalue(), numbers


def _merge_texts(frames: list[Frame]) -> tuple[list[str], Columns]:
    """One table of text for all frames, and each text column's places in it."""
    texts: dict[str, int] = {}
    places: dict[str, list[Any]] = {name: [] for name in TEXTS}
    for frame in frames:
        own = np.array([texts.setdefault(text, len(texts)) for text in frame.strings], np.int32)
        for name in TEXTS:
            places[name].append(own[frame.spans[name]] if len(frame.spans[name]) else np.zeros(0, np.int32))
    return list(texts), {name: np.concatenate(parts) for name, parts in places.items()}


def segment_file(folder: Path, number: int) -> Path:
    return folder / f"{number:06}.spans.parquet"


def read(folder: Path, segment: Segment, columns: list[str] | None = None) -> pa.Table:
    """The segment's table, or some of its columns; texts are dictionaries. BrokenSegment if it is not what was sealed."""
    path = segment_file(folder, segment.number)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BrokenSegment(f"{path}: {error.strerror}") from None
    if len(data) != segment.file_bytes:
        raise BrokenSegment(f"{path}: {len(data)} bytes, but {segment.file_bytes} were sealed")
    if zlib.crc32(data) != segment.crc32:
        raise BrokenSegment(f"{path}: its checksum is not that of what was sealed")
    try:
        table = pq.read_table(io.BytesIO(data), columns=columns, read_dictionary=list(TEXTS), use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise BrokenSegment(f"{path}: {error}") from None
    version = (table.schema.metadata or {}).get(_VERSION_KEY, b"none").decode()
    if version != str(VERSION):
        raise BrokenSegment(f"{path}: written by another version of the store: {version}, not {VERSION}")
    return table


def numbers(table: pa.Table) -> Columns:
    """The columns of `table` that hold numbers."""
    return {name: table[name].to_numpy() for name in table.column_names if name not in TEXTS}


def texts(table: pa.Table, name: str) -> tuple[np.ndarray[Any, Any], list[str]]:
    """A text column as places in a list of texts."""
    column = table[name].combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    return column.indices.to_numpy(zero_copy_only=False), column.dictionary.to_pylist()


def parts(table: pa.Table) -> dict[int, RankPart]:
    """Each rank's share of the segment."""
    return {rank: RankPart(*fields) for rank, *fields in json.loads(table.schema.metadata[_RANKS_KEY])}


def by_rank(table: pa.Table) -> dict[int, tuple[Columns, list[str]]]:
    """For each rank its span columns as a frame holds them, in the order of recording, and the text they index."""
    columns = numbers(table)
    strings: list[str] = []
    for name in TEXTS:  # one table for both columns, the second's places moved behind the first's
        places, column_strings = texts(table, name)
        columns[name] = places + len(strings)
        strings += column_strings
    ranks, starts = np.unique(columns["rank"], return_index=True)
    ends = np.append(starts, len(columns["rank"]))[1:]
    return {
        int(rank): _for_frame({name: column[start:end] for name, column in columns.items()}, strings)
        for rank, start, end in zip(ranks, starts, ends, strict=True)
    }


def _for_frame(columns: Columns, strings: list[str]) -> tuple[Columns, list[str]]:
    order = np.argsort(columns["ordinal"], kind="stable")
    columns = {name: column[order] for name, column in columns.items()}
    used = np.unique(np.concatenate([columns[name] for name in TEXTS]))
    for name in TEXTS:
        columns[name] = np.searchsorted(used, columns[name])
    return {name: columns[name].astype(dtype) for name, dtype in SPAN_COLUMNS}, [strings[place] for place in used]
