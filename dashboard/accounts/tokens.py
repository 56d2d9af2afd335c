"""API tokens: 256 random bits each, kept as a digest, found again by it.

A wrong token is slowed down as a wrong password is (accounts.throttle), but apart from logins: a script
with an old token must not lock its owner out of the pages.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.utils import timezone

from dashboard.accounts import throttle
from dashboard.accounts.models import ApiToken
from dashboard.runs.access import digest

SCOPES = {
    "read": "list, show, compare and export runs",
    "launch": "launch runs",
    "manage": "stop, name, tag, archive, delete, share and comment on runs; saved views and notices",
    "teams": "make teams, decide who is in them, invite, and set webhooks",
}
MOST_TOKENS = 50  # of one user
_PREFIX = "lockstep_"  # lets people and secret scanners see what it is
_TOKEN = re.compile(_PREFIX + r"[A-Za-z0-9_-]{43}\Z")
_NOTED_EVERY = timedelta(minutes=1)  # a busy program must not write to the database with every request


class Slowed(Exception):
    """Several wrong tokens came from this address; the next one is looked at after `seconds`."""

    def __init__(self, seconds: int):
        super().__init__(f"wait {seconds} s")
        self.seconds = seconds


def make(user: Any, name: str, scopes: Iterable[str]) -> tuple[ApiToken, str]:
    """A new token and its text, which is kept nowhere."""
    text = _PREFIX + secrets.token_urlsafe(32)
    ordered = [scope for scope in SCOPES if scope in set(scopes)]
    return ApiToken.objects.create(user=user, name=name, token_digest=digest(text), scopes=ordered), text


def find(text: str, address: str) -> ApiToken | None:
    """The token that `text` is, of a user who is active; None when it is none. Raises Slowed."""
    wanted, place = digest(text), f"api {address}"
    guess = wanted[:16]
    if seconds := throttle.wait_seconds(guess, place):
        raise Slowed(seconds)
    found = ApiToken.objects.select_related("user").filter(token_digest=wanted).first() if _TOKEN.match(text) else None
    if found is None or not hmac.compare_digest(found.token_digest, wanted) or not found.user.is_active:
        throttle.missed(guess, place)
        return None
    _note_use(found)
    return found


def _note_use(token: ApiToken) -> None:
    now = timezone.now()
    if token.last_used_at is None or now - token.last_used_at > _NOTED_EVERY:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
