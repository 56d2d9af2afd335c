"""How long from the end of a span to its pixel, and whether every viewer gets every span."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

import numpy as np

from dashboard.bench.place import CannotMeasure, browser, launch, own_place, owner_page, until
from dashboard.bench.viewers import Viewers

HELP = "from the end of a span to the drawn frame that shows it"

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
        launch(page, stack, PRESET, steps=max(3, round(SECONDS / step_seconds)), pace__forward_ms=forward_ms,
               pace__backward_ms=2 * forward_ms)
        others = _others(context, page, stack.url, viewers - 1)
        until(page, "window.lockstep?.firstSpanAtMs")
        time.sleep(CATCH_UP_SECONDS)
        before = page.evaluate("() => lockstep.latencySamples.length")
        until(page, "lockstep.complete", seconds=20 * SECONDS)
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
    return {
        "span_to_pixel_ms_p50": round(float(np.percentile(latency, 50)), 1),
        "span_to_pixel_ms_p95": round(float(np.percentile(latency, 95)), 1),
        "spans_lost": lost + figures.get("dropped_spans", 0),
        "viewers": viewers,
        "spans_per_second": round(recorded / seconds, 1),
        "spans": recorded,
        "samples": len(latency),
    }


def _others(context: Any, page: Any, url: str, count: int) -> Viewers:
    run_id = page.url.rstrip("/").rsplit("/", 1)[1]
    cookie = "; ".join(f"{cookie['name']}={cookie['value']}" for cookie in context.cookies())
    return Viewers(count, f"{url.replace('http', 'ws', 1)}/ws/runs/{run_id}/", cookie, url)
