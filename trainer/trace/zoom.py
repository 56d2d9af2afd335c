"""The first zoom level: for each rank and lane, cells of CELL_NS with the busy time of each kind in them.

A cell has a row for every kind that touches it, be it for no time at all: presence is exact. Rows
of one cell from several segments add up.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from trainer.trace.frame import Columns

CELL_BITS = 24
CELL_NS = 1 << CELL_BITS  # 16.8 ms: a paced action of 20 ms or more still shows as itself

_DTYPES = {"rank": np.int32, "lane": np.uint8, "cell": np.int64, "kind": np.uint8, "busy_ns": np.int64}
_KEYS = ("rank", "lane", "cell", "kind")


def cells(spans: Columns) -> Columns:
    """Rows (rank, lane, cell, kind, busy_ns), in that order, of `spans` with whole numbers as times."""
    start = spans["start_ns"].astype(np.int64)
    end = start + spans["duration_ns"].astype(np.int64)
    first = start >> CELL_BITS
    counts = (np.maximum(end - 1, start) >> CELL_BITS) - first + 1
    of = np.repeat(np.arange(len(start)), counts)
    cell = first[of] + np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    busy = np.minimum(end[of], (cell + 1) << CELL_BITS) - np.maximum(start[of], cell << CELL_BITS)
    return _added_up({**{name: spans[name][of] for name in ("rank", "lane", "kind")}, "cell": cell, "busy_ns": busy})


def merged(parts: list[Columns]) -> Columns:
    """The rows of several segments, those of the same cell and kind added up."""
    if not parts:
        return {name: np.zeros(0, dtype) for name, dtype in _DTYPES.items()}
    return _added_up({name: np.concatenate([part[name] for part in parts]) for name in _DTYPES})


def dominant(rows: Columns) -> Columns:
    """One row a cell: rank, lane, cell, the kind with most time, its `kind_busy_ns`, and all `busy_ns`."""
    order = np.lexsort((rows["busy_ns"], rows["cell"], rows["lane"], rows["rank"]))
    ordered = {name: column[order] for name, column in rows.items()}
    firsts = _firsts(ordered, ("rank", "lane", "cell"))
    if not len(firsts):
        return {**ordered, "kind_busy_ns": ordered["busy_ns"]}
    lasts = np.append(firsts[1:], len(order)) - 1
    return {
        **{name: ordered[name][lasts] for name in _KEYS},
        "kind_busy_ns": ordered["busy_ns"][lasts],
        "busy_ns": np.add.reduceat(ordered["busy_ns"], firsts),
    }


def to_parquet(rows: Columns) -> bytes:
    file = io.BytesIO()
    table = pa.table({name: rows[name].astype(dtype) for name, dtype in _DTYPES.items()})
    pq.write_table(
        table, file, compression="zstd", use_dictionary=["rank", "lane", "kind"],
        column_encoding={"cell": "DELTA_BINARY_PACKED", "busy_ns": "DELTA_BINARY_PACKED"},
    )
    return file.getvalue()


def from_parquet(data: bytes) -> Columns:
    table = pq.read_table(io.BytesIO(data))
    return {name: table[name].to_numpy() for name in _DTYPES}


def _added_up(rows: Columns) -> Columns:
    order = np.lexsort(tuple(rows[name] for name in reversed(_KEYS)))
    ordered = {name: column[order] for name, column in rows.items()}
    firsts = _firsts(ordered, _KEYS)
    if not len(firsts):
        return ordered
    return {**{name: ordered[name][firsts] for name in _KEYS}, "busy_ns": np.add.reduceat(ordered["busy_ns"], firsts)}


def _firsts(ordered: Columns, keys: tuple[str, ...]) -> np.ndarray[Any, Any]:
    """Where a new combination of `keys` begins."""
    if not len(ordered["cell"]):
        return np.zeros(0, np.int64)
    changes = np.zeros(len(ordered["cell"]), bool)
    changes[0] = True
    for name in keys:
        changes[1:] |= ordered[name][1:] != ordered[name][:-1]
    return np.flatnonzero(changes)
