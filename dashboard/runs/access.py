"""Who may see a run and who may change it: the one answer for views, API and sockets."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import Http404

from dashboard.runs.models import Run, ShareLink

_TOKEN = re.compile(r"[A-Za-z0-9_-]{22,64}\Z")


@dataclass(frozen=True)
class Access:
    run: Run
    can_change: bool
    link: ShareLink | None = None  # set when a share link opened the door


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def visible_runs(user: Any) -> QuerySet[Run]:
    """The runs in `user`'s list: her own; an administrator sees all, also those nobody owns."""
    return _of(user).filter(deleted_at=None)


def deleted_runs(user: Any) -> QuerySet[Run]:
    """Those that `user` may bring back."""
    return _of(user).filter(deleted_at__isnull=False)


def _of(user: Any) -> QuerySet[Run]:
    if not user.is_authenticated:
        return Run.objects.none()
    return Run.objects.all() if user.is_superuser else Run.objects.filter(owner=user)


def access(user: Any, run_id: str | None = None, token: str | None = None) -> Access:
    """The run, and what its visitor may do. Http404 when there is none or none for this visitor."""
    if token is not None:
        return _by_link(token)
    run = visible_runs(user).filter(pk=run_id).first()
    if run is None:
        raise Http404("There is no such run.")
    return Access(run, can_change=True)


def _by_link(token: str) -> Access:
    if not _TOKEN.match(token):
        raise Http404("There is no such run.")
    wanted = digest(token)
    links = ShareLink.objects.select_related("run").filter(taken_back_at=None, run__deleted_at=None)
    link = links.filter(token_digest=wanted).first()
    if link is None or not hmac.compare_digest(link.token_digest, wanted):
        raise Http404("There is no such run.")
    return Access(link.run, can_change=False, link=link)
