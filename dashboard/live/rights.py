"""By which right a viewer watches a run: a login or a share link, asked again whenever the run changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user
from django.contrib.auth.models import AnonymousUser
from django.http import Http404

from dashboard.live.presence import Visitor
from dashboard.runs.access import Access, access
from dashboard.runs.models import Run
from dashboard.runs.state import for_page


@dataclass(frozen=True)
class Right:
    """What opens a run: a share link's token, or a run's id and the session of who asks for it."""

    run_id: str | None = None
    session_key: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)  # a log line must not open a run

    @classmethod
    def of(cls, scope: dict[str, Any]) -> Right:
        asked = scope["url_route"]["kwargs"]
        if "token" in asked:
            return cls(token=asked["token"])
        return cls(run_id=asked["run_id"], session_key=scope["session"].session_key)


def open_by(right: Right) -> tuple[Access, Any] | None:
    """What the right opens, and for whom; None when it opens nothing, or no longer does."""
    user = AnonymousUser() if right.token is not None else user_of(right.session_key)
    try:
        return access(user, right.run_id, right.token), user
    except Http404:
        return None


def admit(right: Right) -> tuple[dict[str, Any], Visitor] | None:
    """The state of the run that the right opens, and who watches by it; or None."""
    opened = open_by(right)
    if opened is None:
        return None
    seen, user = opened
    if seen.link:
        return for_page(seen.run), Visitor(f"link-{seen.link.pk}", seen.link.name or "guest", is_guest=True)
    return for_page(seen.run), Visitor(f"user-{user.pk}", user.get_username(), is_guest=False)


def look(run_id: str, rights: Iterable[Right]) -> tuple[dict[str, Any] | None, set[Right]]:
    """The run's state now (None: there is no such run any more), and those rights that still open it."""
    run = Run.objects.defer("picture").filter(pk=run_id).first()
    if run is None:
        return None, set()
    return for_page(run), {right for right in set(rights) if open_by(right) is not None}


def user_of(session_key: str | None) -> Any:
    """Who is logged in by that session now; its cookie alone proves nothing after a logout."""
    if session_key is None:
        return AnonymousUser()
    store = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    return get_user(SimpleNamespace(session=store))  # type: ignore[arg-type]  # all it reads of a request
