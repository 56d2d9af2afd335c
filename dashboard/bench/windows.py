"""How long the server takes to answer a window of a run, at any zoom, and how far that depends on the run's length."""

from __future__ import annotations

import http.client
import random
import time
from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dashboard.bench.stores import BenchRun, fill, make_runs, server
from dashboard.bench.synthetic import Shape
from trainer.trace.kinds import Lane
from trainer.trace.manifest import load

HELP = "from asking for a window of 1 and of 10 million spans to its first byte"

SHAPE = Shape(copies=16, stages=8)  # 512 lanes
PIXELS = 1400
WINDOWS = 40  # of each run
NARROWEST_NS = 2_000_000


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--spans", type=int, default=10_000_000, help="windows, analysis: of the longer run")


def run(options: dict[str, Any]) -> dict[str, Any]:
    long = options["spans"]
    with TemporaryDirectory(prefix="lockstep-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder).resolve()
        runs = make_runs(home, 2, SHAPE)
        sizes = [fill(run.store, SHAPE, spans) for run, spans in zip(runs, (long // 10, long), strict=True)]
        with server(home) as port:
            short_ms, long_ms = (_first_bytes(port, run) for run in runs)
            opening_ms, opening_bytes = _opening(port, runs[0])
        bytes_per_span = sum(path.stat().st_size for path in runs[1].store.iterdir()) / sizes[1]
        zoom_per_span = sum(path.stat().st_size for path in runs[1].store.glob("zoom.*")) / sizes[1]
    return {
        "first_byte_ms_1m": round(float(np.percentile(short_ms, 95)), 1),
        "first_byte_ms_10m": round(float(np.percentile(long_ms, 95)), 1),
        "first_byte_ms_1m_p50": round(float(np.median(short_ms)), 1),
        "first_byte_ms_10m_p50": round(float(np.median(long_ms)), 1),
        "opening_ms_1m": round(opening_ms, 1),
        "opening_bytes_1m": opening_bytes,
        "bytes_per_span": round(bytes_per_span, 2),
        "zoom_bytes_per_span": round(zoom_per_span, 2),
        "spans_1m": sizes[0],
        "spans_10m": sizes[1],
        "lanes": SHAPE.ranks * len(Lane),
        "pixels": PIXELS,
    }


def _first_bytes(port: int, run: BenchRun) -> list[float]:
    """Milliseconds for windows of every width from the whole run down, anywhere in it; each asked for once before."""
    head, dice = load(run.store), random.Random(1)
    widths = np.geomspace(NARROWEST_NS, head.end_ns - head.start_ns, WINDOWS).astype(int).tolist()
    queries = []
    for width in widths:
        start = head.start_ns + dice.randrange(max(1, head.end_ns - head.start_ns - width))
        queries.append(f"from={start}&to={start + width}&pixels={PIXELS}")
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for query in queries:
        _ask(connection, run, query)
    return [_ask(connection, run, query)[0] for query in queries]


def _opening(port: int, run: BenchRun) -> tuple[float, int]:
    """Milliseconds and bytes until a page that opens has its first view whole."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    began = time.perf_counter()
    size = _ask(connection, run, f"pixels={PIXELS}")[1]
    return (time.perf_counter() - began) * 1000, size


def _ask(connection: http.client.HTTPConnection, run: BenchRun, query: str) -> tuple[float, int]:
    """Milliseconds to the first byte of the answer's body, and the body's size."""
    began = time.perf_counter()
    connection.request("GET", f"/s/{run.token}/window/?{query}")
    answer = connection.getresponse()
    first = answer.read(1)
    waited_ms = (time.perf_counter() - began) * 1000
    if answer.status != 200:
        raise RuntimeError(f"{query}: {answer.status}")
    return waited_ms, len(first) + len(answer.read())
