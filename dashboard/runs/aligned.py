"""One step of several runs, for drawing them one below the other: spans as they were recorded, counted from the step's start."""

from __future__ import annotations

from typing import Any

import numpy as np

from dashboard.runs.models import Run
from dashboard.runs.stored import store_of
from trainer.complaints import FieldError, SpecError
from trainer.trace import windows
from trainer.trace.kinds import Kind, Lane
from trainer.trace.store import StoreReader

MOST_SPANS = 40_000  # of one run's step; what is left out is counted
DRAWN_LANES = (Lane.COMPUTE, Lane.COLLECTIVE, Lane.POINT_TO_POINT)
_COLUMNS = ("rank", "lane", "kind", "micro_batch", "start_ns", "duration_ns")


def aligned(runs: list[Run], step: int | None = None) -> dict[str, Any]:
    """`runs` with their spans of `step`, by default the last that all have; `first` and `last` are steps that all have.

    SpecError for a step that one of them does not have. `step` is None when there is none that all have.
    """
    readers = [store_of(run.pk) for run in runs]
    rows = [{row["step"]: row for row in reader.steps()} for reader in readers]
    shared = sorted(set.intersection(*(set(of_run) for of_run in rows)))
    if not shared:
        return {"step": None, "first": None, "last": None, "runs": []}
    chosen = shared[-1] if step is None else step
    if chosen not in shared:
        raise SpecError([FieldError("step", step, f"a step that all of them have, {shared[0]} to {shared[-1]}, would do")])
    return {
        "step": chosen, "first": shared[0], "last": shared[-1],
        "runs": [_of_run(*one) for one in zip(runs, readers, (of_run[chosen] for of_run in rows), strict=True)],
    }


def _of_run(run: Run, reader: StoreReader, row: dict[str, Any]) -> dict[str, Any]:
    """From the first span that is drawn on: a rank that is through with the step before may wait for this one long before."""
    begin_ns, end_ns = int(row["start_ns"]), int(row["end_ns"])  # figures are floats
    spans = _spans(reader, row["step"], begin_ns, end_ns)
    if len(spans["rank"]):
        begin_ns = int(spans["start_ns"].min())
    spans["start_ns"] = spans["start_ns"] - begin_ns
    drawn = {name: column[:MOST_SPANS].tolist() for name, column in spans.items()}
    return {
        "id": run.pk, "name": run.name, "ranks": run.spec.ranks, "length_ns": end_ns - begin_ns,
        "bubble_share": row.get("bubble_share"), "is_paced": run.spec_json["pace"]["kind"] != "real",
        "spans": drawn, "left_out": max(0, len(spans["rank"]) - MOST_SPANS),
    }


def _spans(reader: StoreReader, step: int, begin_ns: int, end_ns: int) -> dict[str, np.ndarray[Any, Any]]:
    """Of the lanes that are drawn, the longest first, so that what is left out is what would be seen least."""
    found: list[dict[str, np.ndarray[Any, Any]]] = []
    window = windows.window_of(reader, begin_ns, end_ns + 1, windows.MOST_PIXELS)
    for rank, columns, _ in windows.spans(reader, window):
        wanted = (columns["step"] == step) & np.isin(columns["lane"], DRAWN_LANES) & (columns["kind"] != Kind.WAIT)
        found.append({"rank": np.full(int(wanted.sum()), rank)} | {name: columns[name][wanted] for name in _COLUMNS[1:]})
    whole = {name: np.concatenate([one[name] for one in found] or [np.zeros(0)]) for name in _COLUMNS}
    order = np.argsort(-whole["duration_ns"], kind="stable")
    return {name: column[order] for name, column in whole.items()}
