"""The list of runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.runs import fleet
from dashboard.runs.rows import page_of_runs


@dataclass(frozen=True)
class Fleet:
    workers: list[fleet.Worker]
    answers: bool = True  # whether Redis does

    @property
    def ready(self) -> bool:
        return any(worker.host_ready for worker in self.workers)


@never_cache
@require_safe
def runs(request: HttpRequest) -> HttpResponse:
    return render(request, "runs/list.html", _context(request))


@never_cache
@require_safe
def rows(request: HttpRequest) -> HttpResponse:
    """The parts of the list that change by themselves, for its script."""
    return render(request, "runs/_live.html", _context(request))


def _context(request: HttpRequest) -> dict[str, Any]:
    page, found = page_of_runs(request.user, request.GET.get("page"))
    seen = _fleet()
    moves = not seen.ready or any(not row.run.has_ended or row.run.sealed_at is None for row in found)
    return {"page": page, "rows": found, "fleet": seen, "moves": moves}


def _fleet() -> Fleet:
    try:
        return Fleet(fleet.workers())
    except fleet.FleetUnknown:
        return Fleet([], answers=False)
