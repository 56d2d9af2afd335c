"""One run's page, for those who may see it and for the holders of a link."""

from __future__ import annotations

import json
from typing import Any

from csp.constants import NONE
from csp.decorators import csp_replace
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_safe

from dashboard.charts.panels import panels_of
from dashboard.comments.views import sees_comments
from dashboard.learn.ideas import IDEAS
from dashboard.live.opening import opening_of
from dashboard.notices import reading
from dashboard.runs import door, state
from dashboard.runs.access import Access, access
from dashboard.runs.exports.formats import FORMATS
from dashboard.runs.intake import same_preset
from dashboard.runs.links import links_of, note_use
from dashboard.runs.preview import draw
from dashboard.runs.teams import teams_of
from dashboard.runs.variants import variants
from dashboard.runs.views.sharing import forget_new_link, new_link
from trainer.trace.figures import DEFINITIONS, PAGE_DEFINITIONS


@never_cache
@require_safe
def run(request: HttpRequest, run_id: str) -> HttpResponse:
    user: Any = request.user
    seen = access(user, run_id)
    if reading.read(user, run_id):
        door.tell_people([user.pk])
    fresh = new_link(request, seen.run) if seen.can_change else None
    context = _context(seen, request, reverse("run", args=[run_id]), f"/ws/runs/{run_id}/") | {
        "share_links": list(links_of(seen.run)) if seen.can_change else [],
        "new_link": fresh,
        "can_embed": bool(settings.CONF.embed_in),
        "teams": teams_of(request.user) if seen.can_decide else [],
        "variants": variants(seen.run.spec),
        "formats": FORMATS,
    }
    response = render(request, "runs/run.html", context)
    if fresh:
        forget_new_link(response, seen.run)
    return response


def _context(seen: Access, request: HttpRequest, read_base: str, socket_path: str) -> dict[str, Any]:
    panels = [panel for panel in panels_of(seen.run.spec) if panel.key != "comments" or sees_comments(seen)]
    wanted = request.GET.get("view", "")
    return {
        "access": seen,
        "run": state.for_page(seen.run),
        "about": seen.run,  # what people say of it
        "tags": [tag.name for tag in seen.run.tags.all()],
        "read_base": read_base,
        "socket_path": socket_path,
        "opening": json.dumps(opening_of(seen.run.pk)),
        "person": "" if seen.link else request.user.get_username(),  # who can do more here than look
        "definitions": DEFINITIONS | PAGE_DEFINITIONS,
        "preset": same_preset(seen.run.spec),
        "guide": IDEAS.get(request.GET.get("learn", "")),
        "panels": panels,
        "panel_shown": wanted if any(panel.key == wanted for panel in panels) else panels[0].key,
        "spec_json": json.dumps(seen.run.spec.model_dump(mode="json"), indent=2, ensure_ascii=False),
    }


@login_not_required
@never_cache
@require_safe
def shared_run(request: HttpRequest, token: str) -> HttpResponse:
    return _by_link(request, token, "runs/run.html")


@login_not_required
@never_cache
@xframe_options_exempt  # who may frame it is said by the policy, which browsers that know it follow instead
@require_safe
def embedded_run(request: HttpRequest, token: str) -> HttpResponseBase:
    """The run's heading and timeline alone, for a frame in a page of a site that the operator named."""
    framed = csp_replace({"frame-ancestors": settings.CONF.embed_in or [NONE]})
    return framed(lambda asked: _by_link(asked, token, "runs/embed.html"))(request)


def _by_link(request: HttpRequest, token: str, template: str) -> HttpResponse:
    seen = access(request.user, token=token)
    if request.method == "GET" and seen.link:
        note_use(seen.link)
    context = _context(seen, request, reverse("shared-run", args=[token]), f"/ws/s/{token}/")
    context["preview_url"] = request.build_absolute_uri(reverse("shared-preview", args=[token]))
    context["page_url"] = request.build_absolute_uri(reverse("shared-run", args=[token]))
    response = render(request, template, context)
    response["X-Robots-Tag"] = "noindex"
    return response


@login_not_required
@never_cache
@require_safe
def preview(request: HttpRequest, token: str) -> HttpResponse:
    """The picture that a chat shows beside the link."""
    picture = access(request.user, token=token).run.picture
    return HttpResponse(draw(bytes(picture) if picture else None), content_type="image/png")
