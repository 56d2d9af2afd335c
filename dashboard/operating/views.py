"""`/metrics`, for those alone who operate the server."""

from __future__ import annotations

import hmac
import ipaddress

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from dashboard.operating.metrics import REGISTRY

_OF_A_PROXY = ("HTTP_X_FORWARDED_FOR", "HTTP_X_REAL_IP", "HTTP_FORWARDED", "HTTP_VIA")
_REFUSAL = (
    "This is for the server's operator: send the token of LOCKSTEP_METRICS_TOKEN as “Authorization: Bearer …”, "
    "or, where the server stands behind no proxy, ask from the machine itself.\n"
)


@login_not_required
@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    if not (_has_token(request) or _is_from_here(request)):
        return HttpResponse(_REFUSAL, "text/plain; charset=utf-8", 401, headers={"WWW-Authenticate": "Bearer"})
    return HttpResponse(generate_latest(REGISTRY), CONTENT_TYPE_LATEST)


def _has_token(request: HttpRequest) -> bool:
    wanted = settings.CONF.metrics_token
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    return bool(wanted) and kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), wanted.encode())


def _is_from_here(request: HttpRequest) -> bool:
    """Behind a proxy on this machine everybody seems to be here, so then nobody is taken to be."""
    if settings.CONF.origins or any(name in request.META for name in _OF_A_PROXY):
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
