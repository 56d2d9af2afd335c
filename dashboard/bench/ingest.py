"""How many spans a second go from ranks over Redis into sealed segments, and what of the recorder that costs.

The ranks are those of `emulated_ranks`, 64 in one process. First at a steady rate, then all at once, which shows
the limit. For comparison the same spans as INSERTs into SQLite, a batch a frame.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import redis

from dashboard.bench import emulated_ranks, synthetic
from dashboard.bench.emulated_ranks import SHAPE, Flush
from dashboard.bench.place import wait_for
from dashboard.bench.stores import BenchRun, environment, make_runs
from dashboard.conf import ROOT
from dashboard.stack.valkey import prepare
from trainer.lifeline import tied_command
from trainer.trace.frame import SPAN_COLUMNS
from trainer.trace.manifest import Manifest, load
from trainer.trace.stream import EVENT, LIVE_RUNS, RECORDER, frames_key

HELP = "from 64 ranks' frames over Redis into sealed segments"

RATE, SECONDS = 50_000.0, 60.0
BACKLOG_SPANS = 1_000_000
BASELINE_SECONDS = 5.0
SEAL_SECONDS = 300.0  # patience
SETTLING_SECONDS = 10.0  # until the recorder's memory is what it stays


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=SECONDS, help="ingest: how long at the steady rate")


def run(options: dict[str, Any]) -> dict[str, Any]:
    rate = options["rate"] or RATE
    with TemporaryDirectory(prefix="lockstep-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder).resolve()
        steady, backlog = make_runs(home, 2, SHAPE)
        with _valkey(home) as url, redis.Redis.from_url(url) as client, _recorder(home, url) as recorder:
            wait_for(lambda: client.exists(RECORDER), "the recorder")
            figures = _steady(client, steady, recorder, rate, options["seconds"])
            limit, more_lost = _limit(client, backlog)
        size = sum(path.stat().st_size for path in steady.store.glob("*.parquet"))
        figures |= {"limit_spans_per_second": limit, "bytes_per_span": round(size / load(steady.store).spans, 2)}
        figures["spans_lost"] += more_lost
        figures["baseline_spans_per_second"] = _baseline(home / "baseline.sqlite3")
    return figures


def _steady(
    client: Any, run: BenchRun, recorder: subprocess.Popen[bytes], rate: float, seconds: float
) -> dict[str, Any]:
    client.sadd(LIVE_RUNS, run.id)
    steps = emulated_ranks.steps_in(SHAPE, rate, seconds)
    memory_mb: list[float] = []

    def noting(made: Iterable[Flush]) -> Iterator[Flush]:
        for flush in made:
            if not memory_mb and flush.due_seconds > min(SETTLING_SECONDS, seconds / 2):
                memory_mb.append(_resident_mb(recorder))
            yield flush

    began = time.monotonic()
    behind = emulated_ranks.send(client, run.id, noting(emulated_ranks.flushes(SHAPE, rate, steps)))
    sent = time.monotonic()
    memory_mb.append(_resident_mb(recorder))
    recorded = steps * SHAPE.spans_a_step
    head = _end(client, run)
    sealed = time.monotonic()
    return {
        "spans_per_second": round(recorded / (sealed - began)),
        "seconds": round(sent - began, 1),
        "seal_lag_seconds": round(sealed - sent, 2),
        "sender_behind_seconds": round(behind, 2),
        "spans": recorded,
        "spans_lost": recorded - head.spans,
        "recorder_mb_start": memory_mb[0],
        "recorder_mb_end": memory_mb[-1],
        "ranks": SHAPE.ranks,
    }


def _limit(client: Any, run: BenchRun) -> tuple[int, int]:
    """Spans a second out of a stream that is full already, and how many of them were lost."""
    steps = BACKLOG_SPANS // SHAPE.spans_a_step
    made = emulated_ranks.flushes(SHAPE, RATE, steps)
    emulated_ranks.send(client, run.id, (replace(flush, due_seconds=0.0) for flush in made))
    client.xadd(frames_key(run.id), {EVENT: json.dumps({"type": "end"})})
    began = time.monotonic()
    client.sadd(LIVE_RUNS, run.id)
    head = _sealed(run)
    spans = steps * SHAPE.spans_a_step
    return round(spans / (time.monotonic() - began)), spans - head.spans


def _end(client: Any, run: BenchRun) -> Manifest:
    client.xadd(frames_key(run.id), {EVENT: json.dumps({"type": "end"})})
    return _sealed(run)


def _sealed(run: BenchRun) -> Manifest:
    wait_for(lambda: load(run.store).complete, "the recorder to seal the run", SEAL_SECONDS)
    return load(run.store)


def _baseline(path: Path) -> int:
    """Spans a second into a table of SQLite's, one INSERT batch and one transaction a frame."""
    names = ["rank", *(name for name, _ in SPAN_COLUMNS)]
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        columns = ", ".join(map(repr, names))
        database.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE span ({columns});")
        insert = f"INSERT INTO span VALUES ({', '.join('?' * len(names))})"
        spans, inserting = 0, 0.0
        for frames in synthetic.steps(SHAPE, 10_000, seed=3):
            began = time.monotonic()
            for frame in frames:
                values = [frame.spans[name].tolist() for name, _ in SPAN_COLUMNS]
                database.execute("BEGIN")
                database.executemany(insert, zip([frame.rank] * len(values[0]), *values, strict=True))
                database.execute("COMMIT")
            inserting += time.monotonic() - began
            spans += SHAPE.spans_a_step
            if inserting > BASELINE_SECONDS:
                break
    return round(spans / inserting)


@contextmanager
def _valkey(home: Path) -> Iterator[str]:
    valkey = prepare(home)
    server = subprocess.Popen(tied_command(valkey.command), stdout=subprocess.DEVNULL)
    try:
        wait_for(lambda: _answers(valkey.url), "Valkey")
        yield valkey.url
    finally:
        server.terminate()
        server.wait(20)


def _answers(url: str) -> bool:
    try:
        with redis.Redis.from_url(url) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


@contextmanager
def _recorder(home: Path, url: str) -> Iterator[subprocess.Popen[bytes]]:
    command = tied_command([sys.executable, "manage.py", "record"])
    recorder = subprocess.Popen(command, cwd=ROOT, env=environment(home, REDIS_URL=url), stdout=sys.stderr.fileno())
    try:
        yield recorder
    finally:
        recorder.terminate()
        recorder.wait(20)


def _resident_mb(process: subprocess.Popen[bytes]) -> float:
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return round(pages * 4096 / 1e6, 1)
