"""A page of nothing but the static files, for tests of one JavaScript module; `extra` adds answers by path."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

STATIC = Path(__file__).parents[2] / "static"
CSP = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data: blob:"


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *args, extra, **kwargs):
        self.extra = extra
        super().__init__(*args, directory=str(STATIC), **kwargs)

    def do_GET(self):
        path = self.path.split("?")[0]
        if path not in self.extra:
            return super().do_GET()
        kind, body = self.extra[path]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", CSP)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@contextmanager
def serving(extra: dict[str, tuple[str, bytes]] | None = None) -> Iterator[str]:
    """The address of a server; `/` is an empty page under the product's content security policy."""
    answers = {"/": ("text/html", b"<!doctype html><html><body></body></html>")} | (extra or {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, extra=answers))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def until(page, condition: str, seconds: float = 10) -> None:
    """Wait until a JavaScript expression holds. Playwright's own waiting needs eval, which the policy forbids."""
    page.evaluate(
        f"""() => new Promise((resolve, reject) => {{
          const last = performance.now() + {seconds * 1000};
          const look = () => ({condition}) ? resolve()
            : performance.now() > last ? reject(new Error({condition!r} + " did not come true")) : setTimeout(look, 10);
          look();
        }})"""
    )
