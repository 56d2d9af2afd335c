"""From the tuples a rank appends to a frame's columns. Runs in the writer's thread, for a whole flush at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index
from typing import Any

import numpy as np

from trainer.trace.frame import COUNTER_COLUMNS, MARK_COLUMNS, SPAN_COLUMNS, Columns, empty
from trainer.trace.kinds import LANE_OF
from trainer.trace.row import Row

CounterRow = tuple[str, float, int, int]  # name, value, step, at_ns
MarkRow = tuple[str, str, int, int]  # kind, text, step, at_ns

Times = np.ndarray[Any, Any]  # int64, ns
OnRun = Callable[[Times], Times]  # from this machine's clock to the run's

LANES = np.full(256, 255, np.uint8)  # of each kind; 255 where there is no such kind
for _kind, _lane in LANE_OF.items():
    LANES[_kind] = _lane


_NO_COUNTERS, _NO_MARKS = empty(COUNTER_COLUMNS), empty(MARK_COLUMNS)


class Strings:
    """The table of one frame's text: each text once, columns hold its place. It may begin with `texts` that have theirs."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._places = _Places((text, place) for place, text in enumerate(texts))

    def places(self, texts: Sequence[str]) -> np.ndarray[Any, Any]:
        return np.fromiter(map(self._places.__getitem__, texts), np.uint16, len(texts))

    @property
    def table(self) -> list[str]:
        return list(self._places)


class _Places(dict[str, int]):
    def __missing__(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"{text!r} is not text")
        self[text] = place = len(self)
        return place


def spans(rows: Sequence[Row], strings: Strings, on_run: OnRun) -> Columns:
    """The columns of `rows`, whose times `on_run` turns into times on the run's clock."""
    if not rows:
        return empty(SPAN_COLUMNS)
    kind, start, end, step, micro_batch, stage, peer, size, sequence, name, group = zip(*rows, strict=True)
    kinds = np.frombuffer(bytes(kind), np.uint8)
    lanes = LANES[kinds]
    if (lanes == 255).any():
        raise ValueError("a span's kind is not one of trainer.trace.kinds")
    start_ns, end_ns = _whole(start, np.int64), _whole(end, np.int64)
    if (end_ns < start_ns).any():
        raise ValueError("a span ends before it starts")
    start_ns, end_ns = on_run(start_ns), on_run(end_ns)
    return {
        "start_ns": start_ns.astype("<f8"),
        "duration_ns": (end_ns - start_ns).astype("<f8"),
        "bytes": _whole(size, np.int64).astype("<f8"),
        "step": _whole(step, "<i4"),
        "sequence": _whole(sequence, "<i4"),
        "peer": _whole(peer, "<i4"),
        "micro_batch": _whole(micro_batch, "<i2"),
        "stage": _whole(stage, "<i2"),
        "name": strings.places(name),
        "group": strings.places(group),
        "kind": kinds,
        "lane": lanes,
    }


def _whole(values: Sequence[int], dtype: Any) -> np.ndarray[Any, Any]:
    """OverflowError where a value does not fit, TypeError where it is no whole number."""
    return np.fromiter(map(index, values), dtype, len(values))


def counters(rows: Sequence[CounterRow], strings: Strings, on_run: OnRun) -> Columns:
    if not rows:
        return _NO_COUNTERS
    name, value, step, at = zip(*rows, strict=True)
    return {
        "time_ns": on_run(np.array(at, np.int64)).astype("<f8"),
        "value": np.array(value, "<f8"),
        "step": np.array(step, "<i4"),
        "name": strings.places(name),
    }


def marks(rows: Sequence[MarkRow], strings: Strings, on_run: OnRun) -> Columns:
    if not rows:
        return _NO_MARKS
    kind, text, step, at = zip(*rows, strict=True)
    return {
        "time_ns": on_run(np.array(at, np.int64)).astype("<f8"),
        "step": np.array(step, "<i4"),
        "kind": strings.places(kind),
        "text": strings.places(text),
    }


def fitting(rows: list[Any], convert: Callable[[Sequence[Any], Strings, OnRun], Columns]) -> list[Any]:
    """The rows that `convert` takes one by one: what is left when it refused them together."""
    good = []
    for row in rows:
        try:
            convert([row], Strings(), lambda local_ns: local_ns)
        except (TypeError, ValueError, OverflowError):
            continue
        good.append(row)
    return good
