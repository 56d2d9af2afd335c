"""Teams by the API: who is in them, invitations, and where their tools are told of things."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib.auth import get_user_model
from django.http import Http404, HttpRequest
from django.urls import reverse
from django.utils import timezone
from ninja import Status
from ninja.errors import HttpError

from dashboard.accounts import teams
from dashboard.accounts.forms import TeamForm
from dashboard.accounts.models import Invitation, Team
from dashboard.api.auth import may
from dashboard.api.list_schemas import HookOut, Invited, MadeHook, NewHook, NewInvitation, NewRole, NewTeam, TeamPage
from dashboard.api.reading import UNREAD
from dashboard.api.router import router
from dashboard.api.schemas import Problem
from dashboard.notices.models import Webhook
from dashboard.notices.views import MOST_HOOKS, HookForm
from dashboard.roles import Role
from dashboard.runs.state import unix_ms
from trainer.complaints import FieldError, SpecError

READ, TEAMS = may("read"), may("teams")


@router.post("/teams", response={201: TeamPage, **UNREAD}, auth=TEAMS, tags=["teams"], summary="Make a team, which you own")
def make_team(request: HttpRequest, given: NewTeam) -> Status[dict[str, Any]]:
    form = TeamForm(request.user, given.dict())
    _check(form)
    return Status(201, _team_out(teams.make(form.cleaned_data["name"], request.user), Role.OWNER))


@router.get("/teams/{team_id}", response={200: TeamPage, **UNREAD}, auth=READ, tags=["teams"],
            summary="Who is in a team of yours")
def show_team(request: HttpRequest, team_id: int) -> dict[str, Any]:
    return _team_out(*teams.team_and_role(request.user, team_id))


@router.put("/teams/{team_id}/members/{name}", response={200: TeamPage, 409: Problem, **UNREAD}, auth=TEAMS, tags=["teams"],
            summary="Give a member another role")
def set_role(request: HttpRequest, team_id: int, name: str, given: NewRole) -> dict[str, Any]:
    """People come into a team by an invitation alone."""
    found, _ = teams.team_and_role(request.user, team_id, needs=Role.OWNER)
    try:
        teams.set_role(found, _user_id(name), given.role)
    except teams.LastOwner as why:
        raise HttpError(409, str(why)) from None
    return _team_out(*teams.team_and_role(request.user, team_id))


@router.delete("/teams/{team_id}/members/{name}", response={204: None, 409: Problem, **UNREAD}, auth=TEAMS, tags=["teams"],
               summary="Take a member out of a team, or leave it")
def remove_member(request: HttpRequest, team_id: int, name: str) -> Status[None]:
    leaves = name == request.user.get_username()
    found, _ = teams.team_and_role(request.user, team_id, needs=Role.VIEWER if leaves else Role.OWNER)
    try:
        teams.remove(found, _user_id(name))
    except teams.LastOwner as why:
        raise HttpError(409, str(why)) from None
    return Status(204, None)


@router.post("/teams/{team_id}/invitations", response={201: Invited, **UNREAD}, auth=TEAMS, tags=["teams"],
             summary="Make a link that invites into a team")
def invite(request: HttpRequest, team_id: int, given: NewInvitation) -> Status[dict[str, Any]]:
    """The answer alone has its address; it is kept nowhere."""
    found, _ = teams.team_and_role(request.user, team_id, needs=Role.OWNER)
    if teams.open_invitations().filter(team=found).count() >= teams.MOST_INVITATIONS:
        raise SpecError([FieldError("", team_id, f"{teams.MOST_INVITATIONS} links are as many as a team may have")])
    made, token = teams.invite(found, request.user, given.role, given.days, given.most_uses)
    return Status(201, _invitation_out(made) | {"url": request.build_absolute_uri(reverse("invited", args=[token]))})


@router.delete("/teams/{team_id}/invitations/{invitation_id}", response={204: None, **UNREAD}, auth=TEAMS, tags=["teams"],
               summary="Take an invitation back")
def take_invitation_back(request: HttpRequest, team_id: int, invitation_id: int) -> Status[None]:
    found, _ = teams.team_and_role(request.user, team_id, needs=Role.OWNER)
    open_ones = teams.open_invitations().filter(team=found, pk=invitation_id).values("pk")
    if not Invitation.objects.filter(pk__in=open_ones).update(taken_back_at=timezone.now()):
        raise Http404("There is no such invitation.")
    return Status(204, None)


@router.get("/teams/{team_id}/webhooks", response={200: list[HookOut], **UNREAD}, auth=TEAMS, tags=["teams"],
            summary="Where a team's tools are told")
def hooks(request: HttpRequest, team_id: int) -> list[dict[str, Any]]:
    found, _ = teams.team_and_role(request.user, team_id, needs=Role.OWNER)
    return [_hook_out(one) for one in found.webhooks.all()]


@router.post("/teams/{team_id}/webhooks", response={201: MadeHook, **UNREAD}, auth=TEAMS, tags=["teams"], summary="Add a webhook")
def add_hook(request: HttpRequest, team_id: int, given: NewHook) -> Status[dict[str, Any]]:
    found, _ = teams.team_and_role(request.user, team_id, needs=Role.OWNER)
    form = HookForm(given.dict())
    _check(form)
    if found.webhooks.count() >= MOST_HOOKS:
        raise SpecError([FieldError("", team_id, f"{MOST_HOOKS} are as many as a team may have; remove one first")])
    made = Webhook.objects.create(team=found, url=form.cleaned_data["url"], secret=secrets.token_urlsafe(32))
    return Status(201, _hook_out(made) | {"secret": made.secret})


@router.delete("/teams/{team_id}/webhooks/{hook_id}", response={204: None, **UNREAD}, auth=TEAMS, tags=["teams"],
               summary="Remove a webhook")
def remove_hook(request: HttpRequest, team_id: int, hook_id: int) -> Status[None]:
    found, _ = teams.team_and_role(request.user, team_id, needs=Role.OWNER)
    if not found.webhooks.filter(pk=hook_id).delete()[0]:
        raise Http404("There is no such webhook.")
    return Status(204, None)


def _check(form: Any) -> None:
    """The pages' forms are the rule here too."""
    if not form.is_valid():
        raise SpecError([
            FieldError("" if field == "__all__" else field, str(form.data.get(field, ""))[:80], " ".join(map(str, texts)))
            for field, texts in form.errors.items()
        ])


def _user_id(name: str) -> int:
    found = get_user_model().objects.filter(username=name).values_list("pk", flat=True).first() if "\0" not in name else None
    if found is None:
        raise Http404("There is no such member.")
    return found


def _team_out(found: Team, role: Role) -> dict[str, Any]:
    invitations = teams.open_invitations().filter(team=found).select_related("made_by") if role is Role.OWNER else []
    return {
        "id": found.pk, "name": found.name, "role": role,
        "members": [{"name": one.user.get_username(), "role": one.role, "since": unix_ms(one.since)}
                    for one in found.memberships.select_related("user")],
        "invitations": [_invitation_out(one) for one in invitations],
    }


def _invitation_out(one: Invitation) -> dict[str, Any]:
    return {"id": one.pk, "role": one.role, "by": one.made_by.get_username() if one.made_by else None,
            "ends": unix_ms(one.ends_at), "uses": one.uses, "most_uses": one.most_uses}


def _hook_out(hook: Webhook) -> dict[str, Any]:
    return {"id": hook.pk, "url": hook.url, "made": unix_ms(hook.made_at)}
