"""Teams: who is in them, in which role, and the links by which people come in."""

from __future__ import annotations

import re
import secrets
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.http import Http404
from django.utils import timezone

from dashboard.accounts.models import Invitation, Membership, Team
from dashboard.roles import Role
from dashboard.runs import door
from dashboard.runs.access import digest

MOST_TEAMS = 20  # of one user
MOST_INVITATIONS = 20  # of one team at a time
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}\Z")


class LastOwner(Exception):
    """Nobody would be left to decide about the team."""


def make(name: str, user: Any) -> Team:
    with transaction.atomic():
        team = Team.objects.create(name=name)
        Membership.objects.create(team=team, user=user, role=Role.OWNER)
    return team


def team_and_role(user: Any, team_id: int, needs: Role = Role.VIEWER) -> tuple[Team, Role]:
    """Http404 for who is not in the team; PermissionDenied for who may not do this in it. Administrators own every team."""
    team = Team.objects.filter(pk=team_id).first()
    mine = Membership.objects.filter(team=team, user=user).values_list("role", flat=True).first() if team else None
    role = Role.OWNER if user.is_superuser else Role(mine) if mine else None
    if team is None or role is None:
        raise Http404("There is no such team.")
    if not role.allows(needs):
        raise PermissionDenied(f"This takes the role {needs.value}; yours is {role.value}.")
    return team, role


def invite(team: Team, by: Any, role: Role, days: int, most_uses: int) -> tuple[Invitation, str]:
    """A new invitation and its token of 256 bits, which is kept nowhere."""
    token = secrets.token_urlsafe(32)
    made = Invitation.objects.create(
        team=team, role=role, token_digest=digest(token), made_by=by,
        ends_at=timezone.now() + timedelta(days=days), most_uses=most_uses,
    )
    return made, token


def open_invitations() -> QuerySet[Invitation]:
    """Those that still let somebody in; who made one and is an owner no more lets nobody in."""
    now = timezone.now()
    still_owner = Membership.objects.filter(team=OuterRef("team"), user=OuterRef("made_by"), role=Role.OWNER)
    by_whom = Exists(still_owner)
    open_ones = Invitation.objects.filter(taken_back_at=None, ends_at__gt=now, uses__lt=F("most_uses"))
    return open_ones.filter(by_whom) | open_ones.filter(made_by__is_superuser=True)


def find_invitation(token: str) -> Invitation:
    """Http404 when the token opens nothing, or no longer does."""
    wanted = open_invitations().select_related("team", "made_by")
    found = wanted.filter(token_digest=digest(token)).first() if _TOKEN.match(token) else None
    if found is None:
        raise Http404("There is no such invitation.")
    return found


def accept(invitation: Invitation, user: Any) -> Membership:
    """Into the team; a role that she has already never shrinks. Http404 when somebody else was the last it was for."""
    with transaction.atomic():
        mine = Membership.objects.filter(team=invitation.team, user=user).first()
        if mine is not None and Role(mine.role).allows(Role(invitation.role)):
            return mine
        if not open_invitations().filter(pk=invitation.pk).update(uses=F("uses") + 1):
            raise Http404("There is no such invitation.")
        joined, _ = Membership.objects.update_or_create(
            team=invitation.team, user=user, defaults={"role": invitation.role}
        )
        transaction.on_commit(lambda: door.tell_of_teams(user.pk))
    return joined


def set_role(team: Team, user_id: int, role: Role) -> None:
    """LastOwner when nobody would be left who owns the team."""
    with transaction.atomic():
        _member(team, user_id).update(role=role)
        _check_owned(team)


def remove(team: Team, user_id: int) -> None:
    """Her own runs stay hers, also those that she launched for the team. LastOwner as above."""
    with transaction.atomic():
        _member(team, user_id).delete()
        _check_owned(team)
    door.tell_of_teams(user_id)


def _member(team: Team, user_id: int) -> QuerySet[Membership]:
    found = team.memberships.filter(user__pk__in=User.objects.filter(pk=user_id))  # which takes numbers beyond any
    if not found.exists():
        raise Http404("There is no such member.")
    return found


def _check_owned(team: Team) -> None:
    if not team.memberships.filter(role=Role.OWNER).exists():
        raise LastOwner(f"{team.name} would have no owner: make somebody else an owner first.")
