"""What the views beside the timeline cost while a run is live, how fast they draw 1,024 ranks, and how soon the launch
form's preview follows a keystroke.

The live run is `emulated_run`'s, in a stack of the bench's own; the 1,024 ranks are a stored run's. Both are looked at
as a person does, in Chromium at 1440 by 900.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dashboard.bench.emulated_run import emulated_run
from dashboard.bench.place import browser, own_place, owner_page, until
from dashboard.bench.stores import fill, make_runs, server
from dashboard.bench.synthetic import Shape
from dashboard.stack.files import Stack

KEYS = {
    "frame_p95_ms_blank": "gaps between the frames of an empty page in the same browser, 95 in 100 no more than this",
    "frame_p95_ms_no_view": "of the run page with no view in sight",
    "frame_p95_ms_NAME": "with the view NAME open below the timeline",
    "busy_share_NAME": "of the time then, how much the page's thread worked; no_view: without one",
    "frame_p95_ms_costliest_open": "with the view of the largest busy share open for longer",
    "unseen_requests": "for views' data while none was in sight, and for that and charts' on a hidden page; 0 is the goal",
    "unseen_updates": "of what views show, likewise",
    "spans_per_second": "that came to the page while it was looked at",
    "topology_1024_ms": "median from a call to the map of 1,024 ranks' pixels, over all its sizes",
    "topology_1024_ms_worst": "the slowest of them",
    "matrix_1024_ms": "the same of the traffic from rank to rank, summed from spans",
    "matrix_1024_ms_worst": "the slowest of them",
    "preview_ms_p50": "median from a keystroke in the launch form of 4 ranks to the preview, painted",
    "preview_ms_p95": "of 95 in 100 keystrokes no more than this",
    "preview_1024_ms_p50": "the same at 1,024 ranks",
    "preview_1024_ms_p95": "of 95 in 100",
}
HELP = ("the views' frames on a live run, their drawing at 1,024 ranks, and the launch preview's following of keystrokes ("
        + "; ".join(f"{key}: {what}" for key, what in KEYS.items()) + ")")

RATE = 10_000.0
LOOK_SECONDS, LONG_LOOK_SECONDS, UNSEEN_SECONDS, SETTLE_SECONDS = 4.0, 12.0, 5.0, 1.0
RUN_SECONDS = 110.0
MANY = Shape(copies=128, stages=8)
MANY_STEPS = 2
ROUNDS = 12
KEYSTROKES = 30
WIDE_FORM = {"batch": "2048", "grid.dp": "64", "grid.tp": "4"}  # 64 × 4 × 4 with the preset's four stages
IN_PAGE = (Path(__file__).parent / "views_page" / "measure.js").read_text()


def run(options: dict[str, Any]) -> dict[str, Any]:
    rate = options["rate"] or RATE
    os.environ["LOCKSTEP_MOST_RANKS"] = "1024"  # for the stack, which inherits it
    with browser() as context:
        with own_place() as (home, stack, _):
            page = owner_page(context, home, stack)
            figures = {"frame_p95_ms_blank": _p95(_measuring(page).evaluate(f"() => bench.frameGaps({LOOK_SECONDS})"))}
            figures |= _previews(page, stack)
            with emulated_run(home, rate, RUN_SECONDS) as live:
                figures |= _live(page, f"{stack.url}/runs/{live.id}/", live)
        with _many_ranks() as address:
            figures |= _drawn(context.new_page(), address)
    return figures


def _measuring(page: Any) -> Any:
    page.evaluate(f"() => {{ {IN_PAGE} }}")
    return page


def _p95(values: list[float]) -> float:
    return round(float(np.percentile(values, 95)), 2)


def _live(page: Any, address: str, live: Any) -> dict[str, Any]:
    """Every view in turn, the costliest for longer, and what they do when nobody sees them."""
    page.goto(address)
    live.begin()
    until(page, "window.lockstep?.firstSpanAtMs")
    until(page, "document.querySelectorAll('.run-side [data-drawn]').length === 2")  # Plotly's first drawings are over
    _measuring(page)
    worker = page.context.new_cdp_session(page)
    worker.send("Performance.enable")
    names = page.evaluate("() => [...document.querySelectorAll('.run-panels .panel')].map((view) => view.dataset.panel)")
    began, before = time.monotonic(), page.evaluate("() => lockstep.spans")
    frames, busy = {}, {}
    frames["no_view"], busy["no_view"] = _looked(page, worker, LOOK_SECONDS, at_panels=False)
    for name in names:
        _open(page, name)
        frames[name], busy[name] = _looked(page, worker, LOOK_SECONDS)
    costliest = max(names, key=lambda name: busy[name])
    _open(page, costliest)
    long_frames, _ = _looked(page, worker, LONG_LOOK_SECONDS)
    hidden = page.evaluate(f"() => bench.work({UNSEEN_SECONDS}, {{ isHidden: true }})")
    page.evaluate("() => bench.look({ atPanels: false })")
    unseen = page.evaluate(f"() => bench.work({UNSEEN_SECONDS}, {{ isHidden: false }})")
    came = (page.evaluate("() => lockstep.spans") - before) / (time.monotonic() - began)
    return {f"frame_p95_ms_{name}": p95 for name, p95 in frames.items()} | {
        "frame_p95_ms_costliest_open": long_frames,
        **{f"busy_share_{name}": share for name, share in busy.items()},
        "unseen_requests": hidden["requests"] + unseen["requests"],
        "unseen_updates": hidden["updates"] + unseen["updates"],
        "spans_per_second": round(came),
    }


def _open(page: Any, name: str) -> None:
    page.evaluate(f"() => document.getElementById('tab-{name}').click()")


def _looked(page: Any, worker: Any, seconds: float, at_panels: bool = True) -> tuple[float, float]:
    """The 95th percentile of the gaps between frames, and the share of time in which the page's thread worked."""
    page.evaluate(f"() => bench.look({{ atPanels: {'true' if at_panels else 'false'} }})")
    time.sleep(SETTLE_SECONDS)
    busy, began = _worked_seconds(worker), time.monotonic()
    gaps = page.evaluate(f"() => bench.frameGaps({seconds})")
    return _p95(gaps), round((_worked_seconds(worker) - busy) / (time.monotonic() - began), 3)


def _worked_seconds(worker: Any) -> float:
    found = {metric["name"]: metric["value"] for metric in worker.send("Performance.getMetrics")["metrics"]}
    return float(found["TaskDuration"])


@contextmanager
def _many_ranks() -> Iterator[str]:
    """The address of a stored run of 1,024 ranks."""
    with TemporaryDirectory(prefix="lockstep-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder).resolve()
        (made,) = make_runs(home, 1, MANY)
        fill(made.store, MANY, MANY_STEPS * MANY.spans_a_step, has_figures=True)
        with server(home) as port:
            yield f"http://127.0.0.1:{port}/s/{made.token}/"


def _drawn(page: Any, address: str) -> dict[str, Any]:
    page.goto(address)
    until(page, "window.lockstep?.complete")
    found = _measuring(page).evaluate(f"() => bench.topology({ROUNDS})")
    assert found["ranks"] == MANY.ranks and found["pairs"] > MANY.ranks, found
    figures = {}
    for name, key in (("topology", "map"), ("matrix", "matrix")):
        figures[f"{name}_1024_ms"] = round(float(np.median(found[key])), 1)
        figures[f"{name}_1024_ms_worst"] = round(max(found[key]), 1)
    return figures


def _previews(page: Any, stack: Stack) -> dict[str, float]:
    return _preview(page, stack, {}, "preview_ms") | _preview(page, stack, WIDE_FORM, "preview_1024_ms")


def _preview(page: Any, stack: Stack, fields: dict[str, str], key: str) -> dict[str, float]:
    """Digits typed into the number of steps: each makes another job, so that nothing is known from before."""
    page.goto(f"{stack.url}/launch/?preset=pipeline-1f1b&" + "&".join(f"{name}={value}" for name, value in fields.items()))
    _measuring(page)
    times = []
    page.locator("[name=steps]").fill("1")
    page.wait_for_load_state("networkidle")
    for at in range(KEYSTROKES):
        page.evaluate("() => { window.followed = bench.previewMs(); }")
        page.keyboard.press("Backspace" if at % 2 else str(2 + at % 7))
        times.append(page.evaluate("() => followed"))
    return {f"{key}_p50": round(float(np.median(times)), 2), f"{key}_p95": _p95(times)}
