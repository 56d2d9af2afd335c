"""Links by which a run is shown to whoever holds them.

A link's token is kept nowhere on the server. Between making a link and showing it once, the visitor's
own browser carries it, in a signed cookie that only this run's page sees.
"""

from __future__ import annotations

from django.core.signing import BadSignature
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from dashboard.runs import services
from dashboard.runs.access import access
from dashboard.runs.models import Run

_COOKIE = "lockstep_new_link"
_SECONDS = 60


@never_cache
@require_POST
def share(request: HttpRequest, run_id: str) -> HttpResponse:
    run = access(request.user, run_id).run
    link, token = services.share(run, request.user)
    if not request.accepts("text/html"):
        take_back_url = reverse("run-take-back", args=[run.pk, link.pk])
        answer = {"id": link.pk, "url": _address(request, token), "take_back": take_back_url}
        return JsonResponse(answer, status=201)
    response = redirect("run", run.pk)
    response.set_signed_cookie(
        _COOKIE, token, salt=run.pk, max_age=_SECONDS, path=reverse("run", args=[run.pk]),
        httponly=True, secure=request.is_secure(), samesite="Lax",
    )
    return response


@require_POST
def take_back(request: HttpRequest, run_id: str, link_id: int) -> HttpResponse:
    run = access(request.user, run_id).run
    link = run.share_links.filter(pk=link_id, taken_back_at=None).first()
    if link is None:
        raise Http404("There is no such link.")
    services.take_back(link)
    return redirect("run", run.pk) if request.accepts("text/html") else JsonResponse({"id": link_id})


def new_share_url(request: HttpRequest, run: Run) -> str:
    """The address of the link that was made a moment ago; empty when none was."""
    try:
        token = request.get_signed_cookie(_COOKIE, salt=run.pk, max_age=_SECONDS)
    except (KeyError, BadSignature):
        return ""
    return _address(request, token) if token else ""


def forget_new_link(response: HttpResponse, run: Run) -> None:
    response.delete_cookie(_COOKIE, path=reverse("run", args=[run.pk]), samesite="Lax")


def _address(request: HttpRequest, token: str) -> str:
    return request.build_absolute_uri(reverse("shared-run", args=[token]))
