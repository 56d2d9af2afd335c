"""One run's page, for those who may see it and for the holders of a link."""

from __future__ import annotations

import json
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.charts.panels import panels_of
from dashboard.learn.ideas import IDEAS
from dashboard.runs import state
from dashboard.runs.access import Access, access
from dashboard.runs.exports.formats import FORMATS
from dashboard.runs.variants import variants
from dashboard.runs.views.sharing import forget_new_link, new_share_url
from trainer.trace.figures import DEFINITIONS, PAGE_DEFINITIONS


@never_cache
@require_safe
def run(request: HttpRequest, run_id: str) -> HttpResponse:
    seen = access(request.user, run_id)
    url = new_share_url(request, seen.run)
    context = _context(seen, request, reverse("run", args=[run_id]), f"/ws/runs/{run_id}/") | {
        "share_links": list(seen.run.share_links.filter(taken_back_at=None)),
        "new_share_url": url,
        "variants": variants(seen.run.spec),
        "formats": FORMATS,
    }
    response = render(request, "runs/run.html", context)
    if url:
        forget_new_link(response, seen.run)
    return response


@login_not_required
@never_cache
@require_safe
def shared_run(request: HttpRequest, token: str) -> HttpResponse:
    seen = access(request.user, token=token)
    response = render(request, "runs/run.html", _context(seen, request, reverse("shared-run", args=[token]), f"/ws/s/{token}/"))
    response["X-Robots-Tag"] = "noindex"
    return response


def _context(seen: Access, request: HttpRequest, read_base: str, socket_path: str) -> dict[str, Any]:
    panels = panels_of(seen.run.spec)
    wanted = request.GET.get("view", "")
    return {
        "access": seen,
        "run": state.for_page(seen.run),
        "about": seen.run,  # what people say of it
        "tags": [tag.name for tag in seen.run.tags.all()],
        "read_base": read_base,
        "socket_path": socket_path,
        "share_links": [],
        "new_share_url": "",
        "definitions": DEFINITIONS | PAGE_DEFINITIONS,
        "guide": IDEAS.get(request.GET.get("learn", "")),
        "panels": panels,
        "panel_shown": wanted if any(panel.key == wanted for panel in panels) else panels[0].key,
        "spec_json": json.dumps(seen.run.spec_json, indent=2, ensure_ascii=False),
    }
