"""Spans of all ranks as columns of whole numbers, and which of a group's instances a rank belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from trainer.grid import GROUP_AXES, Grid
from trainer.trace import segments
from trainer.trace.frame import Frame

Array = np.ndarray[Any, Any]
Spans = dict[str, Array]  # columns of one length: those of COLUMNS, end_ns, and `group` as Groups numbers it

COLUMNS = {
    "rank": np.int32, "start_ns": np.int64, "duration_ns": np.int64, "step": np.int32, "kind": np.uint8, "lane": np.uint8,
    "sequence": np.int32, "peer": np.int32, "micro_batch": np.int16, "stage": np.int16, "bytes": np.int64,
}
_FROM_FRAMES = {name: dtype for name, dtype in COLUMNS.items() if name != "rank"}


class Groups:
    """Numbers groups of ranks: groups along one axis share a name, and each rank is in one of them.

    A name is that of axes ("tp", "dp×cp", "mirror"); any other is taken to be one group of all ranks.
    """

    def __init__(self, ranks: int, grid: Grid | None = None):
        self.ranks = ranks
        self._grid = grid
        self._numbers: dict[str, Array] = {}

    def of(self, ranks: Array, places: Array, names: Sequence[str]) -> Array:
        """For each span the number of its group, given its rank and its group's place in `names`."""
        used = np.unique(places)
        table = np.zeros((int(used[-1]) + 1 if len(used) else 1, self.ranks), np.int32)
        for place in used.tolist():
            table[place] = self._numbers_of(names[place])
        return table[places, ranks]

    def _numbers_of(self, name: str) -> Array:
        if name not in self._numbers:
            self._numbers[name] = len(self._numbers) * self.ranks + self._instances(name.split("×"))
        return self._numbers[name]

    def _instances(self, axes: list[str]) -> Array:
        if self._grid is None or self._grid.ranks != self.ranks or not set(axes) <= GROUP_AXES:
            return np.zeros(self.ranks, np.int32)
        instances = np.zeros(self.ranks, np.int32)
        for number, members in enumerate(self._grid.groups(*axes)):
            instances[members] = number
        return instances


def of_frames(frames: Sequence[Frame], groups: Groups) -> Spans:
    """All spans of `frames`, a frame after the other."""
    counts = [len(frame.spans["kind"]) for frame in frames]
    spans = {
        name: np.concatenate([frame.spans[name] for frame in frames]).astype(dtype, copy=False)
        for name, dtype in _FROM_FRAMES.items()
    }
    spans["rank"] = np.repeat(np.array([frame.rank for frame in frames], np.int32), counts)
    texts: dict[str, int] = {}
    places = []
    for frame in frames:
        used, at = np.unique(frame.spans["group"], return_inverse=True)
        own = [texts.setdefault(frame.strings[place], len(texts)) for place in used.tolist()]
        places.append(np.array(own, np.int32)[at])
    spans["group"] = groups.of(spans["rank"], np.concatenate(places), list(texts))
    spans["end_ns"] = spans["start_ns"] + spans["duration_ns"]
    return spans


def of_table(table: pa.Table, groups: Groups) -> Spans:
    """All spans of a segment's table, which holds COLUMNS and `group`."""
    spans: Spans = {name: table[name].to_numpy().astype(dtype, copy=False) for name, dtype in COLUMNS.items()}
    places, names = segments.texts(table, "group")
    spans["group"] = groups.of(spans["rank"], places, names)
    spans["end_ns"] = spans["start_ns"] + spans["duration_ns"]
    return spans


def joined(parts: Sequence[Spans]) -> Spans:
    return parts[0] if len(parts) == 1 else {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def picked(spans: Spans, which: Array) -> Spans:
    return {name: column[which] for name, column in spans.items()}
