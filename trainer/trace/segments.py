"""A segment's spans as a Parquet file: from frames, and back to frames.

A span's `ordinal` counts what its rank recorded before it, so the order of recording can be had again.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trainer.trace.frame import SPAN_COLUMNS, BrokenFrame, Columns, Frame

_LATEST_NS = 2.0**53  # beyond it float64 skips whole nanoseconds
_LONGEST_SUM_NS = 2.0**46  # 19 hours of spans in one flush: no clock was read rightly
_WHOLE_NUMBERS = ("start_ns", "duration_ns", "bytes")
_TEXTS = ("name", "group")
_NUMBERS = tuple(
    (name, np.int64 if name in _WHOLE_NUMBERS else np.dtype(dtype)) for name, dtype in SPAN_COLUMNS if name not in _TEXTS
)
# In the order of rows these grow in small steps within a lane, or hold few values: packed deltas are smallest.
_DELTAS = dict.fromkeys(("ordinal", "start_ns", "duration_ns", "step", "sequence", "micro_batch"), "DELTA_BINARY_PACKED")


def check(frame: Frame) -> None:
    """BrokenFrame if the frame holds what no rank can have recorded."""
    spans = frame.spans
    for column in (spans["start_ns"], spans["duration_ns"], spans["bytes"]):
        if not (np.abs(column) < _LATEST_NS).all():  # false for NaN as well
            raise BrokenFrame("a time or a size is not a whole number below 2^53")
    if (spans["duration_ns"] < 0).any() or spans["duration_ns"].sum() > _LONGEST_SUM_NS:
        raise BrokenFrame("durations are negative, or longer than any run")
    texts = len(frame.strings)
    for table, names in ((spans, _TEXTS), (frame.counters, ("name",)), (frame.marks, ("kind", "text"))):
        for name in names:
            if len(table[name]) and int(table[name].max()) >= texts:
                raise BrokenFrame(f"a {name} is not in the frame's {texts} strings")


def to_parquet(frames: list[Frame]) -> tuple[bytes, Columns]:
    """The file of all spans in `frames`, sorted by rank, lane and start, and its numbers in that order."""
    numbers: Columns = {
        name: np.concatenate([frame.spans[name] for frame in frames]).astype(dtype, copy=False) for name, dtype in _NUMBERS
    }
    counts = [(frame, len(frame.spans["kind"])) for frame in frames]
    numbers["rank"] = np.concatenate([np.full(count, frame.rank, np.int32) for frame, count in counts])
    numbers["ordinal"] = np.concatenate([frame.spans_before + np.arange(count, dtype=np.int64) for frame, count in counts])
    order = np.lexsort((numbers["start_ns"], numbers["lane"], numbers["rank"]))
    numbers = {name: column[order] for name, column in numbers.items()}
    texts, places = _merge_texts(frames)
    table = pa.table({
        "rank": numbers["rank"],
        "ordinal": numbers["ordinal"],
        **{name: numbers[name] for name, _ in _NUMBERS},
        **{name: pa.DictionaryArray.from_arrays(places[name][order], pa.array(texts, pa.string())) for name in _TEXTS},
    })
    file = io.BytesIO()
    pq.write_table(
        table, file, compression="zstd", column_encoding=_DELTAS,
        use_dictionary=[name for name in table.column_names if name not in _DELTAS],
    )
    return file.getvalue(), numbers


def _merge_texts(frames: list[Frame]) -> tuple[list[str], Columns]:
    """One table of text for all frames, and each text column's places in it."""
    texts: dict[str, int] = {}
    places: dict[str, list[Any]] = {name: [] for name in _TEXTS}
    for frame in frames:
        own = np.array([texts.setdefault(text, len(texts)) for text in frame.strings], np.int32)
        for name in _TEXTS:
            places[name].append(own[frame.spans[name]] if len(frame.spans[name]) else np.zeros(0, np.int32))
    return list(texts), {name: np.concatenate(parts) for name, parts in places.items()}


def from_parquet(data: bytes) -> dict[int, tuple[Columns, list[str]]]:
    """For each rank in the file its span columns as a frame holds them, in the order of recording, and the text they index."""
    table = pq.read_table(io.BytesIO(data), read_dictionary=list(_TEXTS))
    columns: Columns = {name: table[name].to_numpy() for name in ("rank", "ordinal", *(name for name, _ in _NUMBERS))}
    strings: list[str] = []
    for name in _TEXTS:
        # one table for both columns, the second's places moved behind the first's
        column = table[name].combine_chunks()
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
        columns[name] = column.indices.to_numpy(zero_copy_only=False) + len(strings)
        strings += column.dictionary.to_pylist()
    ranks, starts = np.unique(columns["rank"], return_index=True)
    ends = np.append(starts, len(columns["rank"]))[1:]
    return {
        int(rank): _for_frame({name: column[start:end] for name, column in columns.items()}, strings)
        for rank, start, end in zip(ranks, starts, ends, strict=True)
    }


def _for_frame(columns: Columns, strings: list[str]) -> tuple[Columns, list[str]]:
    order = np.argsort(columns["ordinal"], kind="stable")
    columns = {name: column[order] for name, column in columns.items()}
    used = np.unique(np.concatenate([columns[name] for name in _TEXTS]))
    for name in _TEXTS:
        columns[name] = np.searchsorted(used, columns[name])
    return {name: columns[name].astype(dtype) for name, dtype in SPAN_COLUMNS}, [strings[place] for place in used]
