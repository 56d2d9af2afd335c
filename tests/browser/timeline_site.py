"""What the timeline's tests need: a tiny server of static files and pages, and frames of a made-up pipeline."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from playwright.sync_api import Page

from trainer.trace import frame as frames
from trainer.trace.kinds import LANE_OF, Kind

ROOT = Path(__file__).parents[2]
PAGES = Path(__file__).parent / "pages"


def run(page: Page, body: str) -> Any:
    """Runs `body` in a page of timeline.html, whose modules it sees, and returns what it returns."""
    return page.evaluate(f"() => {{ const b = window.bench; const {{ spans }} = b; {body} }}")


class _Handler(SimpleHTTPRequestHandler):
    """/static/… from the checkout, everything else from `pages` (path → HTML) or tests/browser/pages."""

    def __init__(self, *args: Any, pages: dict[str, str], **kwargs: Any):
        self.pages = pages
        super().__init__(*args, **kwargs)

    def do_GET(self) -> None:
        page = self.pages.get(self.path.partition("?")[0])
        if page is None:
            return super().do_GET()
        body = page.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if body[:1] == b"{" else "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def translate_path(self, path: str) -> str:
        path = path.partition("?")[0]
        if path.startswith("/static/"):
            return str(ROOT / path.lstrip("/"))
        return str(PAGES / path.lstrip("/"))

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def site(pages: dict[str, str] | None = None) -> Iterator[str]:
    """The address of a server that lives as long as the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, pages=pages or {}))
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


Row = dict[str, Any]
SENT_BYTES = 4 << 20


def pipeline(ranks: int = 4, micro_batches: int = 8, steps: int = 12, forward_ms: float = 20, backward_ms: float = 40,
             seed: int = 1) -> tuple[list[list[Row]], list[Row]]:
    """Spans by rank, and step figures, of 1F1B with small delays, simulated event by event."""
    dice = random.Random(seed)
    spans: list[list[Row]] = [[] for _ in range(ranks)]
    figures = []
    now = [0.0] * ranks
    for step in range(steps):
        first = max(now)
        now = [first + 0.4e6 * dice.random() for _ in range(ranks)]
        begun = min(now)
        arrived: dict[tuple[str, int, int], float] = {}
        left = [_one_f_one_b(rank, ranks, micro_batches) for rank in range(ranks)]
        while any(left):
            for rank in range(ranks):
                while left[rank] and _ready(left[rank][0], rank, ranks, arrived):
                    _act(left[rank].pop(0), rank, ranks, step, now, arrived, spans, dice, forward_ms, backward_ms)
        work = [[s for s in spans[r] if s["step"] == step and s["kind"] in (Kind.FORWARD, Kind.BACKWARD)] for r in range(ranks)]
        start, end = min(s["start"] for each in work for s in each), max(s["end"] for each in work for s in each)
        _finish_step(step, now, spans, dice)
        busy = [sum(s["end"] - s["start"] for s in each) for each in work]
        figures.append({
            "step": step, "start_ns": begun, "end_ns": max(now), "duration_ns": max(now) - begun, "work_start_ns": start,
            "work_end_ns": end, "busy_ns": busy, "bubble_share": 1 - sum(busy) / (ranks * (end - start)),
            "ideal_share": ranks * (end - start) / sum(busy) - 1, "samples": 32, "complete": True,
            "loss": 1.2 + 3.4 * 0.86**step + 0.05 * dice.random(),
        })
    return spans, figures


def _one_f_one_b(rank: int, ranks: int, micro_batches: int) -> list[tuple[str, int]]:
    warm = min(ranks - rank - 1, micro_batches)
    steady = [action for m in range(micro_batches - warm) for action in (("F", m + warm), ("B", m))]
    return [("F", m) for m in range(warm)] + steady + [("B", m) for m in range(micro_batches - warm, micro_batches)]


def _ready(action: tuple[str, int], rank: int, ranks: int, arrived: dict[tuple[str, int, int], float]) -> bool:
    what, m = action
    return (rank == 0 if what == "F" else rank == ranks - 1) or (what, m, rank) in arrived


def _act(action: tuple[str, int], rank: int, ranks: int, step: int, now: list[float], arrived: dict[tuple[str, int, int], float],
         spans: list[list[Row]], dice: random.Random, forward_ms: float, backward_ms: float) -> None:
    what, m = action
    common = {"step": step, "micro_batch": m, "stage": rank}
    source = rank - 1 if what == "F" else rank + 1
    there = arrived.get((what, m, rank))
    if there is not None:
        came = {"kind": Kind.RECEIVE, "start": there - 0.9e6, "end": there, "peer": source, "bytes": SENT_BYTES, **common}
        spans[rank].append(came)
        if there > now[rank] + 0.3e6:
            spans[rank].append({"kind": Kind.WAIT, "start": now[rank] + 0.05e6, "end": there, "peer": source, **common})
        now[rank] = max(now[rank], there) + 0.05e6
    length = (forward_ms if what == "F" else backward_ms) * 1e6 * (1 + 0.06 * dice.random())
    kind = Kind.FORWARD if what == "F" else Kind.BACKWARD
    spans[rank].append({"kind": kind, "start": now[rank], "end": now[rank] + length, **common})
    now[rank] += length
    target = rank + 1 if what == "F" else rank - 1
    if 0 <= target < ranks:
        sent = {"kind": Kind.SEND, "start": now[rank], "end": now[rank] + 0.8e6, "peer": target, "bytes": SENT_BYTES, **common,
                "stage": target}  # a letter names the stage that it is for
        spans[rank].append(sent)
        arrived[(what, m, target)] = now[rank] + 1e6


def _finish_step(step: int, now: list[float], spans: list[list[Row]], dice: random.Random) -> None:
    """Everyone averages gradients when the last one is there, then updates its weights."""
    last = max(now)
    for rank, begin in enumerate(now):
        spans[rank].append({"kind": Kind.ALL_REDUCE, "start": begin, "end": last + 6e6, "step": step, "group": "data",
                            "sequence": step, "bytes": 24 << 20})
        spans[rank].append({"kind": Kind.OPTIMIZER, "start": last + 6e6, "end": last + 15e6 + 1e6 * dice.random(), "step": step})
        now[rank] = spans[rank][-1]["end"]


def encoded(rank: int, sequence: int, rows: list[Row], before: int, zero_unix_ns: int | None = None) -> bytes:
    """One frame of a rank's rows."""
    strings = ["", "data", "zero", str(zero_unix_ns or 0)]
    columns = frames.empty(frames.SPAN_COLUMNS, len(rows))
    for at, row in enumerate(rows):
        columns["start_ns"][at], columns["duration_ns"][at] = row["start"], row["end"] - row["start"]
        columns["bytes"][at] = row.get("bytes", -1)
        for name in ("step", "sequence", "peer", "micro_batch", "stage"):
            columns[name][at] = row.get(name, frames.NONE)
        columns["group"][at] = 1 if row.get("group") else 0
        columns["kind"][at], columns["lane"][at] = row["kind"], LANE_OF[row["kind"]]
    marks = frames.empty(frames.MARK_COLUMNS, 1 if zero_unix_ns is not None else 0)
    if zero_unix_ns is not None:
        marks["step"][0], marks["kind"][0], marks["text"][0] = -1, 2, 3
    return frames.encode(frames.Frame(
        rank=rank, sequence=sequence, spans=columns, counters=frames.empty(frames.COUNTER_COLUMNS), marks=marks, strings=strings,
        spans_before=before, clock_uncertainty_ns=12e3, written_ns=float(np.max(columns["start_ns"], initial=0)),
    ))


def batch(cursor: str, encoded_frames: list[bytes], events: list[Row], complete: bool) -> bytes:
    """An answer to a pull, as the server sends it."""
    meta = json.dumps({"cursor": cursor, "events": events, "complete": complete, "frames": len(encoded_frames)}).encode()
    meta += b" " * (-len(meta) % 8)
    return b"LKB1" + len(meta).to_bytes(4, "little") + meta + b"".join(encoded_frames)
