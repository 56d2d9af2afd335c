"""How long from the end of a span to its pixel, and whether every viewer gets every span."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

import numpy as np

from dashboard.bench.emulated_run import emulated_run
from dashboard.bench.place import CannotMeasure, browser, launch, own_place, owner_page, process_of, until, wait_for
from dashboard.bench.server_cost import ServerCost
from dashboard.bench.viewers import Viewers
from dashboard.stack.files import Stack

KEYS = {
    "span_to_pixel_ms_p50": "median from a span's end to the drawn frame that shows it, on a real page",
    "span_to_pixel_ms_p95": "of 95 in 100 spans no more than this",
    "spans_lost": "that a viewer or the store lacks, all viewers together",
    "viewers": "of the run, the real page among them",
    "spans_per_second": "recorded, over the whole run; a real job's includes its start",
    "spans": "recorded",
    "samples": "spans whose way to the page was timed, evenly chosen of all after the first second",
    "bytes_per_viewer": "that each was sent, mean of the others than the page; null with one viewer",
    "server_cores": "that the server kept busy while the run was live",
    "server_cores_per_viewer": "the same by viewer",
    "server_mb_before": "the server's memory before anybody watched",
    "server_mb_peak": "its most while they did",
    "server_mb_per_viewer": "what it grew by, by viewer; the run's tail, which all share, is in it",
    "bench_cores": "that the other viewers and what asks the page kept busy: the bench's own, which the stack did not have",
    "sender_cores": "that the emulated ranks kept busy; null of a real job",
    "sender_behind_ms": "by which the emulated ranks were late at most; null of a real job",
}
_KEYS_IN_WORDS = "; ".join(f"{key}: {what}" for key, what in KEYS.items())
HELP = f"from the end of a span to the drawn frame that shows it, and what viewers cost the server ({_KEYS_IN_WORDS})"

PRESET = "pipeline-1f1b"
SECONDS = 20.0  # that the run is to last
CATCH_UP_SECONDS = 1.0  # spans that ended before the page was there are history; from here on it is live
ASK_SECONDS = 0.5  # from one question to the page to the next: each takes of what is measured
STEP_SECONDS = 0.66  # at forward 20 ms, backward 40 ms


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--viewers", type=int, default=1, help="of the same run; the first is a real page")
    parser.add_argument("--rate", type=float, help="spans a second, of emulated ranks; without it a real job of four is watched")


def run(options: dict[str, Any]) -> dict[str, Any]:
    viewers, rate = options["viewers"], options["rate"]
    if viewers < 1:
        raise CannotMeasure("--viewers counts from 1: the first is the page that is measured")
    with own_place() as (home, stack, _), browser() as context:
        page = owner_page(context, home, stack)
        cost = ServerCost(wait_for(lambda: process_of(home, b"dashboard.stack.serve"), "the server") or 0)
        if rate is None:
            launch(page, stack, PRESET, steps=round(SECONDS / STEP_SECONDS))
            return _watched(context, page, stack, viewers, cost) | {"sender_cores": None, "sender_behind_ms": None}
        with emulated_run(home, rate, SECONDS) as emulated:
            page.goto(f"{stack.url}/runs/{emulated.id}/")
            figures = _watched(context, page, stack, viewers, cost, emulated.begin)
            ranks = emulated.wait()
            behind_ms = round(1000 * ranks["behind_seconds"], 1)
            return figures | {"sender_cores": round(ranks["cores"], 4), "sender_behind_ms": behind_ms}


def _watched(
    context: Any, page: Any, stack: Stack, viewers: int, cost: ServerCost, begin: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """What the page and the other viewers see of the run that the page is open at, from its beginning to its end."""
    others = _others(context, page, stack.url, viewers - 1)
    others.wait_until_connected()
    begin()
    until(page, "window.lockstep?.firstSpanAtMs")
    time.sleep(CATCH_UP_SECONDS)
    page.evaluate("() => { lockstep.latencySamples = []; }")
    cost.begin()
    busy, began = time.process_time(), time.monotonic()
    until(page, "lockstep.complete", seconds=20 * SECONDS, every_seconds=ASK_SECONDS)
    bench_cores = (time.process_time() - busy) / (time.monotonic() - began)
    cost.end()
    until(page, "lockstep.run.figures.spans", seconds=20)
    others.wait(30)
    seen = page.evaluate("() => ({spans: lockstep.spans, latency: lockstep.latencySamples, run: lockstep.run})")
    figures = seen["run"]["figures"]
    recorded = figures["spans"]
    latency = np.array(seen["latency"], float)
    if not len(latency):
        raise CannotMeasure("the page showed no span live")
    lost = abs(recorded - seen["spans"]) + sum(abs(recorded - counted.spans) for counted in others.counted)
    seconds = (seen["run"]["ended"] - seen["run"]["started"]) / 1000
    sent = [counted.received_bytes for counted in others.counted]
    return {
        "span_to_pixel_ms_p50": round(float(np.percentile(latency, 50)), 1),
        "span_to_pixel_ms_p95": round(float(np.percentile(latency, 95)), 1),
        "spans_lost": lost + figures.get("dropped_spans", 0),
        "viewers": viewers,
        "spans_per_second": round(recorded / seconds, 1),
        "spans": recorded,
        "samples": len(latency),
        "bytes_per_viewer": round(sum(sent) / len(sent)) if sent else None,
        **cost.per_viewer(viewers),
        "bench_cores": round(bench_cores, 4),
    }


def _others(context: Any, page: Any, url: str, count: int) -> Viewers:
    run_id = page.url.rstrip("/").rsplit("/", 1)[1]
    cookie = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in context.cookies())
    return Viewers(count, f"{url.replace('http', 'ws', 1)}/ws/runs/{run_id}/", cookie, url)
