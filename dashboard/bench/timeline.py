"""How fast the timeline draws, takes in and finds, with Plotly's bars beside it in the same browser.

Spans are made in the page from a seed. Times include what it takes to get to pixels: ours by reading one back, Plotly's
by the layout and painting of the frame that follows; waiting for that frame is not counted. The first frame's spans come
from a server on this machine, as the bytes that a page is sent of a finished run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

import plotly

from dashboard.bench.place import CannotMeasure, browser, until
from dashboard.bench.stored_run import stored_run

HELP = "the timeline's frames, appends and hits, with Plotly beside it"

PAGE = Path(__file__).parent / "timeline_page"
STATIC = Path(__file__).parents[2] / "static"
PLOTLY = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"

LANES, MANY_LANES = 64, 512
MILLION = 1_000_000
FIRST_FRAMES = 3
FOLLOWED_PER_SECOND, FOLLOWED_SECONDS = 50_000, 60


def run(options: dict[str, Any]) -> dict[str, Any]:
    with _server() as url, browser() as context:
        page = context.new_page()
        page.set_viewport_size({"width": 1440, "height": 960})
        figures = _ours(page, url) | _plotly(page, url) | {"first_frame_1m_ms": _first_frame(page, url)}
    order = (
        "redraw_1m_ms", "redraw_10k_ms", "plotly_redraw_10k_ms", "cached_pan_ms", "frame_p95_ms", "frame_p95_5m_ms",
        "follow_50k_frame_p95_ms",
        "append_1000_ms", "append_max_ms", "plotly_append_1000_ms", "hit_test_us", "first_frame_1m_ms",
    )
    return {name: round(figures[name], 3) for name in order}


def _ours(page: Any, url: str) -> dict[str, float]:
    _open(page, url)
    page.evaluate(f"() => bench.fill({LANES}, 10_000)")
    figures = {"redraw_10k_ms": page.evaluate("() => bench.redraw()")}
    _open(page, url)
    page.evaluate(f"() => bench.fill({LANES}, {MILLION})")
    figures["redraw_1m_ms"] = page.evaluate("() => bench.redraw()")
    figures["frame_p95_ms"] = page.evaluate("() => bench.framesP95()")
    figures["cached_pan_ms"] = page.evaluate("() => bench.cachedPan()")
    figures["hit_test_us"] = page.evaluate("() => bench.hitTest().us")
    appended = page.evaluate("() => bench.append()")
    figures |= {"append_1000_ms": appended["median"], "append_max_ms": appended["longest"]}
    _open(page, url)
    page.evaluate(f"() => bench.fill({MANY_LANES}, {5 * MILLION})")
    figures["frame_p95_5m_ms"] = page.evaluate("() => bench.framesP95()")
    _open(page, url)
    followed = page.evaluate(f"() => bench.followP95({LANES}, {FOLLOWED_PER_SECOND}, {FOLLOWED_SECONDS})")
    if followed["spans"] < 0.98 * FOLLOWED_PER_SECOND * FOLLOWED_SECONDS or not followed["isFollowing"]:
        raise CannotMeasure(f"The page took in {followed['spans']} spans in {FOLLOWED_SECONDS} s, or stopped following.")
    return figures | {"follow_50k_frame_p95_ms": followed["p95"]}


def _plotly(page: Any, url: str) -> dict[str, float]:
    _open(page, url)
    page.add_script_tag(url=f"{url}/plotly.min.js")
    taken = page.evaluate(f"() => bench.plotly({LANES}, 10_000, 1000)")
    return {"plotly_redraw_10k_ms": taken["redraw"], "plotly_append_1000_ms": taken["append"]}


def _first_frame(page: Any, url: str) -> float:
    taken = []
    for _ in range(FIRST_FRAMES):
        _open(page, url)
        taken.append(page.evaluate(f"() => bench.firstFrame({LANES}, '/run.bin').then(({{ ms }}) => ms)"))
    return median(taken)


def _open(page: Any, url: str) -> None:
    page.goto(f"{url}/bench/index.html")
    until(page, "window.bench")


class _Handler(SimpleHTTPRequestHandler):
    """The bench's page, the product's static files, Plotly's bundle, and a run."""

    def __init__(self, *args: Any, stored: bytes, **kwargs: Any):
        self.stored = stored
        super().__init__(*args, **kwargs)

    def do_GET(self) -> None:
        if self.path != "/run.bin":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(self.stored)))
        self.end_headers()
        self.wfile.write(self.stored)

    def translate_path(self, path: str) -> str:
        if path == "/plotly.min.js":
            return str(PLOTLY)
        _, folder, rest = path.split("/", 2)
        root = PAGE if folder == "bench" else STATIC
        found = (root / rest).resolve()
        return str(found if found.is_relative_to(root.resolve()) else root / "absent")

    def log_message(self, *args: Any) -> None:
        pass


@contextmanager
def _server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, stored=stored_run(LANES, MILLION)))
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
