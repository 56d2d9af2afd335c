"""The web server: `python -m dashboard.stack.serve --host HOST --port PORT`.

With `--fd N` it takes a socket that its parent listens on: while the server is started again, browsers
wait in the socket's queue and get no refusal.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys

import uvicorn

from dashboard.stack.ports import PortRefused, listen

GRACE_SECONDS = 2  # for open websockets, when it ends: pages connect again by themselves


def config(app: str = "dashboard.asgi:application") -> uvicorn.Config:
    return uvicorn.Config(
        app,
        ws="websockets-sansio",
        ws_per_message_deflate=False,  # frames hardly shrink, and deflating them halves the rate
        ws_max_size=65_536,  # what browsers send is small
        lifespan="off",
        access_log=False,
        log_config=None,  # what it says goes the way of everything else, in the same form
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="dashboard.stack.serve", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--fd", type=int, help="a listening socket")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    try:
        # Made from the number alone, a socket finds out its own kind; and only what is TCP is sent without delay.
        listener = listen(options.host, options.port) if options.fd is None else socket.socket(fileno=options.fd)
    except PortRefused as refusal:
        sys.exit(str(refusal))
    uvicorn.Server(config()).run(sockets=[listener])


if __name__ == "__main__":
    main()
