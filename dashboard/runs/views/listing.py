"""The list of runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.runs import fleet
from dashboard.runs.facets import facets
from dashboard.runs.query import FIELDS
from dashboard.runs.rows import COLUMNS, USUAL_COLUMNS, Asked, page_of_runs
from dashboard.runs.views.bulk import take_undo


@dataclass(frozen=True)
class Fleet:
    workers: list[fleet.Worker]
    answers: bool = True  # whether Redis does

    @property
    def ready(self) -> bool:
        return any(worker.host_ready for worker in self.workers)


@dataclass(frozen=True)
class Head:
    """A column's head: where a press on it leads, and how the list is sorted by it now."""

    name: str
    words: str
    address: str = ""
    sorted: str = ""  # as aria-sort says it


SORTED_BY = {"bubble": "bubble", "loss": "loss", "steps": "steps", "step": "step", "when": "created"}
NUMBERS = ("bubble", "loss", "step", "steps")


@never_cache
@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    asked = _asked(request)
    views = list(request.user.saved_views.all())  # type: ignore[union-attr]  # logged in
    context = _context(request, asked) | {
        "facets": facets(request.user, asked),
        "choices": [(name, words, name in asked.columns) for name, words in COLUMNS.items()],
        "usual_columns": ".".join(USUAL_COLUMNS),
        "examples": [field.help for field in FIELDS.values()],
        "views": [(view, view.address == asked.address()) for view in views],
        "undo": take_undo(request),
    }
    return render(request, "runs/list.html", context)


@never_cache
@require_safe
def rows(request: HttpRequest) -> HttpResponse:
    """The parts of the list that change by themselves, for its script."""
    return render(request, "runs/_live.html", _context(request, _asked(request)))


def _asked(request: HttpRequest) -> Asked:
    """A form of checkboxes sends a column at a time; addresses have them in one word."""
    given = request.GET.dict()
    if ticked := request.GET.getlist("column"):
        given["columns"] = ".".join(ticked)
    return Asked.of(given, request.user)


def _context(request: HttpRequest, asked: Asked) -> dict[str, Any]:
    page, found = page_of_runs(request.user, asked)
    seen = _fleet()
    moves = not seen.ready or any(not row.run.has_ended or row.run.sealed_at is None for row in found)
    return {
        "page": page, "rows": found, "fleet": seen, "moves": moves, "asked": asked, "address": asked.address(),
        "heads": [_head(asked, "state", "State"), _head(asked, "name", "Name")]
        + [_head(asked, name, words) for name, words in COLUMNS.items() if name in asked.columns],
        "numbers": NUMBERS,
    }


def _head(asked: Asked, name: str, words: str) -> Head:
    key = SORTED_BY.get(name, name if name in ("state", "name") else "")
    if not key:
        return Head(name, words)
    sorted_now = {f"-{key}": "descending", key: "ascending"}.get(asked.sort, "")
    return Head(name, words, asked.sorted_by(key), sorted_now)


def _fleet() -> Fleet:
    try:
        return Fleet(fleet.workers())
    except fleet.FleetUnknown:
        return Fleet([], answers=False)
