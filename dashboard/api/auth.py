"""Who asks the API: a program by its token, within the token's scopes, or a person by her session, CSRF and all."""

from __future__ import annotations

import time
from typing import Any

from django.core.cache import cache
from django.http import HttpRequest
from ninja.errors import AuthenticationError, AuthorizationError, HttpError
from ninja.security import HttpBearer, django_auth
from ninja.throttling import BaseThrottle

from dashboard.accounts import tokens

REQUESTS_A_MINUTE = 1200  # of one user, by session or by any of her tokens


class TooSoon(HttpError):
    def __init__(self, message: str, seconds: int):
        super().__init__(429, message)
        self.seconds = seconds


class Token(HttpBearer):
    """A bearer token that has `scope`. Whoever shows a wrong one is refused, whatever her cookies say."""

    def __init__(self, scope: str):
        super().__init__()
        self.scope = scope

    def authenticate(self, request: HttpRequest, token: str) -> Any:
        try:
            found = tokens.find(token, request.META.get("REMOTE_ADDR", ""))
        except tokens.Slowed as wait:
            raise TooSoon("Several wrong tokens came from your address", wait.seconds) from None
        if found is None:
            raise AuthenticationError(message="There is no such token; it may have been taken back")
        if self.scope not in found.scopes:
            has = ", ".join(found.scopes)
            raise AuthorizationError(message=f"This needs a token with the scope {self.scope}; this one has {has}")
        request.user = found.user
        return found.user


class Rate(BaseThrottle):
    """So many requests in each minute of the clock."""

    def allow_request(self, request: HttpRequest) -> bool:
        key = f"api-rate-{request.user.pk}-{int(time.time() // 60)}"
        cache.add(key, 0, timeout=120)
        return bool(cache.incr(key) <= REQUESTS_A_MINUTE)

    def wait(self) -> float:
        return 60 - time.time() % 60


def may(scope: str) -> list[Any]:
    """For an operation's `auth`: a token with that scope, or a session."""
    return [Token(scope), django_auth]
