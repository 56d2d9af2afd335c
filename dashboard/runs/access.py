"""Who may see a run and who may change it: the one answer for views, API and sockets."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import Http404
from django.utils import timezone

from dashboard.logs import now_about
from dashboard.roles import Role
from dashboard.runs.models import Run, ShareLink

_TOKEN = re.compile(r"[A-Za-z0-9_-]{22,64}\Z")
_RUN_ID = re.compile(r"[a-z0-9]{1,16}\Z")


@dataclass(frozen=True)
class Access:
    run: Run
    role: Role
    link: ShareLink | None = None  # set when a share link opened the door

    @property
    def can_change(self) -> bool:
        return self.role.allows(Role.EDITOR)

    @property
    def can_decide(self) -> bool:
        """Who sees the run, and whether it stays."""
        return self.role.allows(Role.OWNER)


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def visible_runs(user: Any, needs: Role = Role.VIEWER) -> QuerySet[Run]:
    """The runs in `user`'s list, or those of them in which she has the role `needs`: her own, and her teams'.

    An administrator sees all, also those nobody owns.
    """
    return _of(user, needs).filter(deleted_at=None)


def deleted_runs(user: Any) -> QuerySet[Run]:
    """Those that `user` may bring back."""
    return _of(user, Role.OWNER).filter(deleted_at__isnull=False)


def _of(user: Any, needs: Role) -> QuerySet[Run]:
    if not user.is_authenticated:
        return Run.objects.none()
    if user.is_superuser:
        return Run.objects.all()
    teams = user.memberships.filter(role__in=Role.from_on(needs)).order_by().values("team")
    return Run.objects.filter(Q(owner=user) | Q(team__in=teams))


def within(do: str, user: Any) -> QuerySet[Run]:
    """The runs to which `user` may do that: stop, tag, archive, unarchive, delete or restore."""
    if do == "restore":
        return deleted_runs(user)
    return visible_runs(user, needs=Role.OWNER if do == "delete" else Role.EDITOR)


def access(user: Any, run_id: str | None = None, token: str | None = None, needs: Role = Role.VIEWER) -> Access:
    """The run, and what its visitor may do.

    Http404 when there is none or none for this visitor; PermissionDenied when she sees it and it takes more to do this.
    """
    seen = _by_link(token) if token is not None else _by_login(user, run_id)
    now_about(seen.run.pk)
    if not seen.role.allows(needs):
        raise PermissionDenied(f"This takes the role {needs.value} in the run's team; yours is {seen.role.value}.")
    return seen


def _by_login(user: Any, run_id: str | None) -> Access:
    if not user.is_authenticated or not _RUN_ID.match(run_id or ""):
        raise Http404("There is no such run.")
    in_team = user.memberships.filter(team=OuterRef("team")).order_by().values("role")[:1]
    run = visible_runs(user).annotate(role_in_team=Subquery(in_team)).filter(pk=run_id).first()
    if run is None:
        raise Http404("There is no such run.")
    is_own = user.is_superuser or run.owner_id == user.pk
    return Access(run, Role.OWNER if is_own else Role(run.role_in_team))


def open_links() -> QuerySet[ShareLink]:
    """Those that were not taken back and have not ended."""
    return ShareLink.objects.filter(Q(ends_at=None) | Q(ends_at__gt=timezone.now()), taken_back_at=None)


def _by_link(token: str) -> Access:
    if not _TOKEN.match(token):
        raise Http404("There is no such run.")
    wanted = digest(token)
    link = open_links().select_related("run").filter(token_digest=wanted, run__deleted_at=None).first()
    if link is None or not hmac.compare_digest(link.token_digest, wanted):
        raise Http404("There is no such run.")
    return Access(link.run, Role.VIEWER, link=link)
