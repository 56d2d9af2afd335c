"""How long from the end of a span to its pixel, and whether every viewer gets every span."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

import numpy as np

from dashboard.bench.place import CannotMeasure, browser, launch, own_place, owner_page, process_of, until, wait_for
from dashboard.bench.server_cost import ServerCost
from dashboard.bench.viewers import Viewers

KEYS = {
    "span_to_pixel_ms_p50": "median from a span's end to the drawn frame that shows it, on a real page",
    "span_to_pixel_ms_p95": "of 95 in 100 spans no more than this",
    "spans_lost": "that a viewer or the store lacks, all viewers together",
    "viewers": "of the run, the real page among them",
    "spans_per_second": "recorded, over the whole run",
    "spans": "recorded",
    "samples": "spans whose way to the page was timed",
    "bytes_per_viewer": "that each was sent, mean of the others than the page; null with one viewer",
    "server_cores": "that the server kept busy while the run was live",
    "server_cores_per_viewer": "the same by viewer",
    "server_mb_before": "the server's memory before anybody watched",
    "server_mb_peak": "its most while they did",
    "server_mb_per_viewer": "what it grew by, by viewer; the run's tail, which all share, is in it",
}
_KEYS_IN_WORDS = "; ".join(f"{key}: {what}" for key, what in KEYS.items())
HELP = f"from the end of a span to the drawn frame that shows it, and what viewers cost the server ({_KEYS_IN_WORDS})"

PRESET = "pipeline-1f1b"
SECONDS = 20.0  # that the run is to last
CATCH_UP_SECONDS = 1.0  # spans that ended before the page was there are history; from here on it is live
MOST_SAMPLES = 20_000  # that a page keeps (static/js/views/surface.js)
RANKS, MICRO_BATCHES = 4, 8
SPANS_A_STEP = 250  # of the preset, about: what each rank computes, sends, receives and waits for
SLOWEST_STEP_SECONDS = 0.66  # at forward 20 ms, backward 40 ms


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--viewers", type=int, default=1, help="of the same run; the first is a real page")
    parser.add_argument("--rate", type=float, help="spans a second to aim at, by the pace of the job")


def run(options: dict[str, Any]) -> dict[str, Any]:
    viewers, rate = options["viewers"], options["rate"]
    if viewers < 1:
        raise CannotMeasure("--viewers counts from 1: the first is the page that is measured")
    step_seconds = SPANS_A_STEP / rate if rate else SLOWEST_STEP_SECONDS
    forward_ms = round(20 * step_seconds / SLOWEST_STEP_SECONDS, 3)
    with own_place() as (home, stack, _), browser() as context:
        page = owner_page(context, home, stack)
        cost = ServerCost(wait_for(lambda: process_of(home, b"dashboard.stack.serve"), "the server") or 0)
        launch(page, stack, PRESET, steps=max(3, round(SECONDS / step_seconds)), pace__forward_ms=forward_ms,
               pace__backward_ms=2 * forward_ms)
        others = _others(context, page, stack.url, viewers - 1)
        until(page, "window.lockstep?.firstSpanAtMs")
        time.sleep(CATCH_UP_SECONDS)
        before = page.evaluate("() => lockstep.latencySamples.length")
        cost.begin()
        until(page, "lockstep.complete", seconds=20 * SECONDS)
        cost.end()
        until(page, "lockstep.run.figures.spans", seconds=20)
        others.wait(30)
        seen = page.evaluate("() => ({spans: lockstep.spans, latency: lockstep.latencySamples, run: lockstep.run})")
    figures = seen["run"]["figures"]
    recorded = figures["spans"]
    latency = np.array(seen["latency"][before if len(seen["latency"]) < MOST_SAMPLES else 0 :], float)
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
    }


def _others(context: Any, page: Any, url: str, count: int) -> Viewers:
    run_id = page.url.rstrip("/").rsplit("/", 1)[1]
    cookie = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in context.cookies())
    return Viewers(count, f"{url.replace('http', 'ws', 1)}/ws/runs/{run_id}/", cookie, url)
