"""A team's page: its members and their roles, and the links that invite to it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from dashboard.accounts import teams
from dashboard.accounts.forms import InviteForm, TeamForm
from dashboard.accounts.models import Team
from dashboard.roles import MAY, Role


@require_POST
def make_team(request: HttpRequest) -> HttpResponse:
    form = TeamForm(request.user, request.POST)
    if not form.is_valid():
        messages.error(request, " ".join(str(text) for texts in form.errors.values() for text in texts))
        return redirect("account")
    return redirect("team", teams.make(form.cleaned_data["name"], request.user).pk)


@never_cache
@require_safe
def team(request: HttpRequest, team_id: int) -> HttpResponse:
    found, role = teams.team_and_role(request.user, team_id)
    return _page(request, found, role, InviteForm())


@never_cache
@sensitive_variables("token", "url")
@require_POST
def invite(request: HttpRequest, team_id: int) -> HttpResponse:
    """A new link is shown in the answer to the form that made it, and nowhere else."""
    found, role = teams.team_and_role(request.user, team_id, needs=Role.OWNER)
    form = InviteForm(request.POST)
    if teams.open_invitations().filter(team=found).count() >= teams.MOST_INVITATIONS:
        form.add_error(None, f"{teams.MOST_INVITATIONS} links are as many as a team may have. Take one back first.")
    if not form.is_valid():
        return _page(request, found, role, form, status=422)
    given = form.cleaned_data
    _, token = teams.invite(found, request.user, Role(given["role"]), given["days"], given["most_uses"])
    url = request.build_absolute_uri(reverse("invited", args=[token]))
    return _page(request, found, role, InviteForm(), new_url=url, status=201)


@require_POST
def take_invitation_back(request: HttpRequest, team_id: int, invitation_id: int) -> HttpResponse:
    found, _ = teams.team_and_role(request.user, team_id, needs=Role.OWNER)
    invitation = get_object_or_404(teams.open_invitations(), team=found, pk=invitation_id)
    invitation.taken_back_at = timezone.now()
    invitation.save(update_fields=["taken_back_at"])
    messages.success(request, "That link lets nobody in any more.")
    return redirect("team", found.pk)


@require_POST
def member(request: HttpRequest, team_id: int, user_id: int) -> HttpResponse:
    """Another role, or out; everybody may leave by herself."""
    leaves = user_id == request.user.pk and request.POST.get("do") == "remove"
    found, _ = teams.team_and_role(request.user, team_id, needs=Role.VIEWER if leaves else Role.OWNER)
    try:
        if request.POST.get("do") == "remove":
            teams.remove(found, user_id)
        elif request.POST.get("role") in Role.values:
            teams.set_role(found, user_id, Role(request.POST["role"]))
        else:
            messages.error(request, f"There is no such role; {', '.join(Role.values)} would do.")
    except teams.LastOwner as why:
        messages.error(request, str(why))
    return redirect("account") if leaves else redirect("team", found.pk)


def _page(request: HttpRequest, found: Team, role: Role, form: InviteForm, new_url: str = "", status: int = 200) -> HttpResponse:
    decides = role is Role.OWNER
    context: dict[str, Any] = {
        "team": found,
        "role": role,
        "decides": decides,
        "members": list(found.memberships.select_related("user")),
        "roles": [(one.value, MAY[one]) for one in Role],
        "invitations": list(teams.open_invitations().filter(team=found).select_related("made_by")) if decides else [],
        "form": form,
        "new_url": new_url,
    }
    return render(request, "accounts/team.html", context, status=status)
