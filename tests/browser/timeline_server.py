"""A run page without a stack behind it: its HTML, and the other end of its socket."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

from django.shortcuts import render
from django.test import RequestFactory
from playwright.sync_api import Page, WebSocketRoute

from dashboard.charts.panels import panels_of
from tests.browser.timeline_site import batch, encoded
from trainer.spec import parse
from trainer.trace.figures import DEFINITIONS, PAGE_DEFINITIONS

RANKS, STEPS = 4, 10
SPEC = parse({
    "name": "Four stages", "grid": {"pp": RANKS}, "schedule": {"name": "1f1b"}, "pace": {"kind": "paced"}, "steps": STEPS,
})


def state(name: str = "finished", **changes: Any) -> dict[str, Any]:
    ended = name in ("finished", "failed", "stopped", "lost")
    return {
        "id": "abcdefghjk", "name": SPEC.name, "state": name, "reason": "", "failure": None, "has_ended": ended,
        "place_in_queue": 0, "steps": STEPS, "steps_done": STEPS if ended else 3, "ranks": RANKS, "created": 0, "started": 1000,
        "ended": 9000 if ended else None, "sealed": None, "worker": "box", "realtime": True, "figures": {},
        "spec": json.loads(SPEC.to_json()), "grid": [{"dp": 0, "ep": 0, "pp": rank, "cp": 0, "tp": 0} for rank in range(RANKS)],
        "theory": {"bubble_share": 3 / 11, "formula": "(p−1)/(m+p−1) = 3/11"}, **changes,
    }


def html(run: dict[str, Any], can_change: bool = True) -> str:
    request = RequestFactory().get(f"/runs/{run['id']}/")
    request.user = cast(Any, SimpleNamespace(is_authenticated=can_change, get_username=lambda: "ada"))
    context = {
        "run": run, "access": SimpleNamespace(can_change=can_change, can_decide=can_change, link=None),
        "person": "ada" if can_change else "", "socket_path": "/ws/runs/abcdefghjk/", "read_base": "/runs/abcdefghjk/",
        "spec_json": json.dumps(run["spec"]), "definitions": DEFINITIONS | PAGE_DEFINITIONS,
        "panels": panels_of(SPEC), "panel_shown": "log",
    }
    return render(request, "runs/run.html", context).content.decode()


class Server:
    """The other end of the page's socket: it answers pulls with the batches it was given."""

    def __init__(self, page: Page, run: dict[str, Any]):
        self.run = run
        self.batches: list[bytes] = []
        self.waiting = False
        self.socket: Any = None
        self.forget()
        page.route_web_socket("**/ws/runs/**", self._open)

    def forget(self) -> None:
        """What is given from here on is for a page that has nothing yet."""
        self.sequences = [0] * RANKS
        self.before = [0] * RANKS

    def _open(self, socket: WebSocketRoute) -> None:
        self.socket = socket
        socket.send(json.dumps({"type": "state", "run": self.run}))
        socket.on_message(lambda message: self._pulled())

    def _pulled(self) -> None:
        self.waiting = True
        self._answer()

    def _answer(self) -> None:
        if self.waiting and self.batches:
            self.waiting = False
            self.socket.send(self.batches.pop(0))

    def give(self, spans: list[list[dict[str, Any]]], figures: list[dict[str, Any]], complete: bool = False,
             zero_unix_ns: int | None = None) -> None:
        made = []
        for rank, rows in enumerate(spans):
            self.sequences[rank] += 1
            made.append(encoded(rank, self.sequences[rank], sorted(rows, key=lambda row: row["start"]), self.before[rank],
                                zero_unix_ns if rank == 0 else None))
            self.before[rank] += len(rows)
        events = [{"type": "steps", "rows": figures}] if figures else []
        self.batches.append(batch(str(self.sequences[0]), made, events, complete))
        self._answer()

    def say(self, **changes: Any) -> None:
        self.run = {**self.run, **changes}
        self.socket.send(json.dumps({"type": "state", "run": self.run}))
