"""Spans and step figures as tables: Parquet, and CSV that a spreadsheet may open without harm.

Where a span has no step, peer or the like the cell is empty; times are whole nanoseconds on the run's clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from dashboard.runs.exports.source import Progress, Source
from trainer.trace.frame import Frame
from trainer.trace.kinds import Kind, Lane

SPANS = pa.schema([
    ("rank", pa.int32()), ("lane", pa.string()), ("kind", pa.string()), ("name", pa.string()),
    ("start_ns", pa.int64()), ("duration_ns", pa.int64()), ("step", pa.int32()), ("micro_batch", pa.int32()),
    ("stage", pa.int32()), ("group", pa.string()), ("sequence", pa.int32()), ("bytes", pa.int64()), ("peer", pa.int32()),
])
_MAY_LACK = ("step", "micro_batch", "stage", "sequence", "bytes", "peer")
_STEP_NUMBERS = ("start_ns", "end_ns", "duration_ns", "period_ns", "work_start_ns", "work_end_ns")
_STEP_SHARES = ("bubble_share", "ideal_share", "exposed_share", "loss", "samples", "samples_per_second", "learning_rate",
                "grad_norm")
_STEP_SUMS = ("busy_ns", "wait_ns", "collective_ns")  # a number a rank in the store; over all ranks here
STEPS = pa.schema([
    ("step", pa.int32()), *((name, pa.int64()) for name in _STEP_NUMBERS), *((name, pa.float64()) for name in _STEP_SHARES),
    *((name, pa.int64()) for name in _STEP_SUMS), ("complete", pa.bool_()),
])
_STEPS_AT_ONCE = 4096
_KINDS, _LANES = ({one.value: one.name.lower().replace("_", "-") for one in names} for names in (Kind, Lane))
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would compute a cell that begins so


class Writer(Protocol):
    def write_table(self, table: pa.Table) -> None: ...
    def close(self) -> None: ...


def spans_parquet(source: Source, file: BinaryIO, progress: Progress) -> None:
    _write(pq.ParquetWriter(file, SPANS, compression="zstd"), span_tables(source, progress))


def spans_csv(source: Source, file: BinaryIO, progress: Progress) -> None:
    _write(csv.CSVWriter(file, SPANS), map(harmless, span_tables(source, progress)))


def steps_parquet(source: Source, file: BinaryIO, progress: Progress) -> None:
    _write(pq.ParquetWriter(file, STEPS, compression="zstd"), step_tables(source))


def steps_csv(source: Source, file: BinaryIO, progress: Progress) -> None:
    _write(csv.CSVWriter(file, STEPS), step_tables(source))


def _write(writer: Writer, tables: Iterator[pa.Table]) -> None:
    for table in tables:
        writer.write_table(table)
    writer.close()


def span_tables(source: Source, progress: Progress) -> Iterator[pa.Table]:
    for frames in source.segments(progress):
        yield from (_spans(frame) for frame in frames if len(frame.spans["kind"]))


def _spans(frame: Frame) -> pa.Table:
    columns = frame.spans
    return pa.table({
        "rank": np.full(len(columns["kind"]), frame.rank, np.int32),
        "lane": _words(columns["lane"], _LANES),
        "kind": _words(columns["kind"], _KINDS),
        "name": _texts(columns["name"], frame.strings),
        "start_ns": columns["start_ns"].astype(np.int64),
        "duration_ns": columns["duration_ns"].astype(np.int64),
        **{name: pa.array(columns[name].astype(np.int64), mask=columns[name] < 0) for name in _MAY_LACK},
        "group": _texts(columns["group"], frame.strings),
    }).select(SPANS.names).cast(SPANS)


def _words(codes: np.ndarray[Any, Any], words: dict[int, str]) -> pa.Array:
    known, of = np.unique(codes, return_inverse=True)
    return pa.DictionaryArray.from_arrays(of.astype(np.int32), [words.get(int(code), f"kind {code}") for code in known])


def _texts(places: np.ndarray[Any, Any], strings: list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(places.astype(np.int32), pa.array(strings, pa.string()))


def harmless(table: pa.Table) -> pa.Table:
    """Text that begins like a formula gets a quote in front: foreign programs name spans as they like."""
    for at, field in enumerate(table.schema):
        if field.type == pa.string():
            encoded = table.column(at).combine_chunks().dictionary_encode()
            safe = [f"'{text}" if text and text.startswith(_FORMULA) else text for text in encoded.dictionary.to_pylist()]
            column = pa.DictionaryArray.from_arrays(encoded.indices, pa.array(safe, pa.string()))
            table = table.set_column(at, field, column.cast(pa.string()))
    return table


def step_tables(source: Source) -> Iterator[pa.Table]:
    rows = source.steps()
    while some := list(islice(rows, _STEPS_AT_ONCE)):
        yield pa.Table.from_pylist([row | {name: sum(row[name]) for name in _STEP_SUMS} for row in some], schema=STEPS)
