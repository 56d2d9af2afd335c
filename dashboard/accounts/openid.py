"""Logging in with a company's accounts, by OpenID Connect: off unless the operator names a provider (dashboard.conf).

The library does the code flow with state, nonce and PKCE. It leaves open who a token was made by and for: that is
checked here. People are known by the provider's own number for them (`iss` and `sub`), never by an e-mail address,
which somebody else may have there tomorrow.
"""

from __future__ import annotations

import logging
import re
from typing import Any

import jwt
import requests
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.core.exceptions import SuspiciousOperation
from django.db import transaction
from django.http import HttpRequest
from mozilla_django_oidc.auth import OIDCAuthenticationBackend

from dashboard.accounts import first_visit
from dashboard.accounts.models import Identity
from dashboard.runs.access import digest

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 5
KEPT_SECONDS = 3600  # what the provider says of its addresses
SIGNED_BY = "RS256"  # what every provider has to offer (OpenID Connect Core, section 15.1)
_ADDRESSES = {
    "OIDC_OP_AUTHORIZATION_ENDPOINT": "authorization_endpoint", "OIDC_OP_TOKEN_ENDPOINT": "token_endpoint",
    "OIDC_OP_USER_ENDPOINT": "userinfo_endpoint", "OIDC_OP_JWKS_ENDPOINT": "jwks_uri",
}
_NOT_IN_NAMES = re.compile(r"[^\w.+-]", re.ASCII)


class ProviderAway(Exception):
    """The provider does not say where its endpoints are."""


def is_on() -> bool:
    return bool(settings.CONF.oidc_issuer)


def setting(name: str, *default: Any) -> Any:
    """The library's settings: ours, the provider's addresses as it tells them, else the library's own defaults."""
    conf = settings.CONF
    ours = {
        "OIDC_RP_CLIENT_ID": conf.oidc_client_id, "OIDC_RP_CLIENT_SECRET": conf.oidc_client_secret,
        "OIDC_RP_SIGN_ALGO": SIGNED_BY, "OIDC_RP_SCOPES": "openid email profile", "OIDC_USE_PKCE": True,
        "OIDC_TIMEOUT": TIMEOUT_SECONDS, "OIDC_AUTHENTICATION_CALLBACK_URL": "openid-callback",
        "LOGIN_REDIRECT_URL": settings.LOGIN_REDIRECT_URL,
    }
    if name in _ADDRESSES:
        return _discovered()[_ADDRESSES[name]]
    return ours[name] if name in ours else default[0]


def _discovered() -> dict[str, Any]:
    issuer = settings.CONF.oidc_issuer
    key = f"openid-{digest(issuer)}"
    if (known := cache.get(key)) is not None:
        return dict(known)
    try:
        answer = requests.get(f"{issuer}/.well-known/openid-configuration", timeout=TIMEOUT_SECONDS)
        answer.raise_for_status()
        found = answer.json()
        if found["issuer"].rstrip("/") != issuer or not set(_ADDRESSES.values()) <= set(found):
            raise ProviderAway(f"{issuer} says that it is {found['issuer']}, or lacks an endpoint")
    except (requests.RequestException, ValueError, KeyError, TypeError) as error:
        raise ProviderAway(f"{issuer} does not answer: {error}") from error
    cache.set(key, found, KEPT_SECONDS)
    return dict(found)


class Backend(OIDCAuthenticationBackend):
    """Instances are made with every request that looks for a user, so nothing is asked of the provider before a login."""

    def __init__(self) -> None:
        self.UserModel = get_user_model()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("OIDC_"):
            return setting(name, None)
        raise AttributeError(name)

    @staticmethod
    def get_settings(attr: str, *args: Any) -> Any:
        return setting(attr, *args)

    def authenticate(self, request: HttpRequest | None, **kwargs: Any) -> Any:
        if not is_on() or request is None or "nonce" not in kwargs:
            return None
        try:
            return super().authenticate(request, **kwargs)
        except (SuspiciousOperation, jwt.PyJWTError, requests.RequestException, ProviderAway, ValueError, KeyError) as error:
            log.warning("a login by OpenID Connect was refused: %s", error)
            return None

    def verify_token(self, token: str, **kwargs: Any) -> dict[str, Any]:
        payload: dict[str, Any] = super().verify_token(token, **kwargs)
        audience = payload.get("aud")
        conf = settings.CONF
        if str(payload.get("iss", "")).rstrip("/") != conf.oidc_issuer:
            raise SuspiciousOperation("the token was made by somebody else")
        if conf.oidc_client_id not in (audience if isinstance(audience, list) else [audience]):
            raise SuspiciousOperation("the token was made for somebody else")
        if not payload.get("sub") or "exp" not in payload:
            raise SuspiciousOperation("the token does not say whom it is about, or until when")
        return payload

    def get_userinfo(self, access_token: str, id_token: str, payload: dict[str, Any]) -> dict[str, Any]:
        found = super().get_userinfo(access_token, id_token, payload)
        if found.get("sub") != payload["sub"]:
            raise SuspiciousOperation("the provider tells of somebody else than the token does")
        return dict(found)

    def verify_claims(self, claims: dict[str, Any]) -> bool:
        """Whether somebody of a domain that may come in; and not before the server has its first owner."""
        domains = settings.CONF.oidc_domains
        domain = str(claims.get("email", "")).rpartition("@")[2].lower()
        return first_visit.is_over() and (not domains or (claims.get("email_verified") is True and domain in domains))

    def filter_users_by_claims(self, claims: dict[str, Any]) -> Any:
        known = Identity.objects.filter(issuer=settings.CONF.oidc_issuer, subject=claims["sub"])
        return self.UserModel.objects.filter(pk__in=known.values("user"))

    def create_user(self, claims: dict[str, Any]) -> Any:
        """A new account without a password; an account of the same name that is there already stays somebody else's."""
        with transaction.atomic():
            user = self.UserModel.objects.create_user(self._free_name(claims))
            Identity.objects.create(user=user, issuer=settings.CONF.oidc_issuer, subject=claims["sub"])
        return user

    def _free_name(self, claims: dict[str, Any]) -> str:
        wished = str(claims.get("preferred_username") or claims.get("email") or "").partition("@")[0]
        name = _NOT_IN_NAMES.sub("", wished)[:140] or "user"
        taken = set(self.UserModel.objects.filter(username__istartswith=name).values_list("username", flat=True))
        taken = {one.lower() for one in taken}
        numbered = (f"{name}{number}" for number in range(2, len(taken) + 3))
        return next(one for one in (name, *numbered) if one.lower() not in taken)
