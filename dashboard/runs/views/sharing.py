"""Links by which a run is shown to whoever holds them.

A link's token is kept nowhere on the server. Between making a link and showing it once, the visitor's
own browser carries it, in a signed cookie that only this run's page sees.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.core.signing import BadSignature
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from dashboard.roles import Role
from dashboard.runs import links, services
from dashboard.runs.access import access
from dashboard.runs.models import Run
from dashboard.runs.teams import asked_team
from trainer.complaints import SpecError

_COOKIE = "lockstep_new_link"
_SECONDS = 60


@never_cache
@require_POST
def share(request: HttpRequest, run_id: str) -> HttpResponse:
    run = access(request.user, run_id, needs=Role.EDITOR).run
    try:
        link, token = links.share(run, request.user, _wish(request.POST))
    except SpecError as error:
        for one in error.errors:
            messages.error(request, str(one))
        return redirect("run", run.pk)
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


def _wish(posted: QueryDict) -> links.Wish:
    days = posted.get("days", "")
    return links.Wish(
        name=posted.get("name", ""), days=int(days) if days.isdecimal() and len(days) < 5 else None,
        view=posted.get("view", ""), with_comments="with_comments" in posted,
    )


@require_POST
def take_back(request: HttpRequest, run_id: str, link_id: int) -> HttpResponse:
    run = access(request.user, run_id, needs=Role.EDITOR).run
    link = links.links_of(run).filter(pk=link_id).first()
    if link is None:
        raise Http404("There is no such link.")
    links.take_back(link)
    return redirect("run", run.pk) if request.accepts("text/html") else JsonResponse({"id": link_id})


@require_POST
def give(request: HttpRequest, run_id: str) -> HttpResponse:
    """Whose the run is from now on: a team's, or its owner's alone."""
    run = access(request.user, run_id, needs=Role.OWNER).run
    try:
        services.give(run, asked_team(request.user, request.POST.get("team", "")))
    except SpecError as error:
        messages.error(request, str(error))
    return redirect("run", run.pk)


@dataclass(frozen=True)
class NewLink:
    url: str
    embed_url: str


def new_link(request: HttpRequest, run: Run) -> NewLink | None:
    """The addresses of the link that was made a moment ago, if one was."""
    try:
        token = request.get_signed_cookie(_COOKIE, salt=run.pk, max_age=_SECONDS)
    except (KeyError, BadSignature):
        return None
    return NewLink(_address(request, token), _address(request, token, "embedded-run")) if token else None


def forget_new_link(response: HttpResponse, run: Run) -> None:
    response.delete_cookie(_COOKIE, path=reverse("run", args=[run.pk]), samesite="Lax")


def _address(request: HttpRequest, token: str, name: str = "shared-run") -> str:
    return request.build_absolute_uri(reverse(name, args=[token]))
