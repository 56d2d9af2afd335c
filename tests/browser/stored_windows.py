"""A stored run behind a page's window requests, answered by the product's own code; its spans are the truth to compare with."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
from playwright.sync_api import Error, Page, Route

from dashboard.bench.stores import fill
from dashboard.bench.synthetic import Shape, steps
from dashboard.live import window_message
from dashboard.live.windows import asked
from trainer.trace import windows
from trainer.trace.kinds import Kind
from trainer.trace.store import StoreReader

SHAPE = Shape(copies=2, stages=4)


class StoredRun:
    """`spans`: (n, 5) of rank, lane, kind, start and end in ns, all that were recorded."""

    def __init__(self, folder: Path, spans: int):
        self.frames = [frame for step in steps(SHAPE, -(-spans // SHAPE.spans_a_step)) for frame in step]
        fill(folder, SHAPE, spans)
        self.reader = StoreReader(folder)
        names = ("lane", "kind", "start_ns", "duration_ns")
        columns = [np.concatenate([frame.spans[name] for frame in self.frames]) for name in names]
        rank = np.concatenate([np.full(len(frame.spans["kind"]), frame.rank) for frame in self.frames])
        lane, kind, start, duration = (column.astype(np.int64) for column in columns)
        self.spans = np.stack([rank, lane, kind, start, start + duration], axis=1)

    @property
    def sealed(self) -> dict[str, Any]:
        """As a page of a finished run begins (dashboard/live/opening.py)."""
        head = self.reader.manifest
        return {"spans_before": head.spans, "start_ns": head.start_ns, "end_ns": head.end_ns, "held_from_ns": None}

    def of(self, rank: int, lane: int) -> np.ndarray[Any, Any]:
        """[start, duration, kind] of a lane's spans by start."""
        found = self.spans[(self.spans[:, 0] == rank) & (self.spans[:, 1] == lane)]
        return np.stack([found[:, 3], found[:, 4] - found[:, 3], found[:, 2]], axis=1)[np.argsort(found[:, 3], kind="stable")]

    def busy(self, rank: int, lane: int, first: int, count: int, cell_ns: int) -> np.ndarray[Any, Any]:
        """By brute force: the share of each cell that the lane's spans fill; waiting fills none."""
        shares = np.zeros(count)
        for start, duration, kind in self.of(rank, lane).tolist():
            if kind == Kind.WAIT:
                continue
            end = start + duration
            for cell in range(max(first, start // cell_ns), min(first + count - 1, max(end - 1, start) // cell_ns) + 1):
                shares[cell - first] += max(1e-9, (min(end, (cell + 1) * cell_ns) - max(start, cell * cell_ns)) / cell_ns)
        return shares


class Answers:
    """What a page's window requests get. `failures`: how many of the next are refused; `stalls`: how many get no answer."""

    def __init__(self, page: Page, run: StoredRun):
        self.run, self.failures, self.stalls, self.queries = run, 0, 0, list[dict[str, str]]()
        self.settled_ns: float | None = None  # instead of what the store says
        self._stalled: list[Route] = []
        page.route("**/window/?*", self._answer)

    def _answer(self, route: Route) -> None:
        query = dict(parse_qsl(urlsplit(route.request.url).query))
        self.queries.append(query)
        if self.stalls:
            self.stalls -= 1
            self._stalled.append(route)
            return
        if self.failures:
            self.failures -= 1
            route.fulfill(status=503, json={"error": "The store is being moved."})
            return
        reader = self.run.reader
        window = asked(reader, query)
        found = windows.segments_in(reader, window)
        settled_ns = reader.settled_ns if self.settled_ns is None else self.settled_ns
        if windows.is_few(found, window):
            body = window_message.of_spans(window, windows.spans(reader, window), found[-1].number if found else 0, settled_ns)
        else:
            body = window_message.of_cells(windows.cells(reader, window), found[-1].number, settled_ns)
        route.fulfill(status=200, body=body, content_type="application/octet-stream")

    def end(self) -> None:
        for route in self._stalled:
            with suppress(Error):  # the page has given it up
                route.abort()
