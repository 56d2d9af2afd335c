"""Whether every part answers, for load balancers and for people in doubt."""

from __future__ import annotations

import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.runs import fleet
from trainer.trace.stream import RECORDER


@login_not_required
@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 when the pages can work (database and Redis), else 503. A missing worker or recorder is said."""
    parts = {"database": _database(), "redis": _redis(), "worker": _worker(), "recorder": _recorder()}
    well = parts["database"] == "ok" and parts["redis"] == "ok"
    return JsonResponse({"ok": well, **parts}, status=200 if well else 503)


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "away"
    return "ok"


def _redis() -> str:
    try:
        _client().ping()
    except (redis.RedisError, ValueError):
        return "away"
    return "ok"


def _worker() -> str:
    try:
        workers = fleet.workers()
    except fleet.FleetUnknown:
        return "unknown"
    if not workers:
        return "none"
    return "ok" if any(worker.host_ready for worker in workers) else "loading"


def _recorder() -> str:
    try:
        return "ok" if _client().exists(RECORDER) else "none"
    except (redis.RedisError, ValueError):
        return "unknown"


def _client() -> redis.Redis:
    return redis.Redis.from_url(settings.CONF.redis_url, socket_timeout=2, socket_connect_timeout=2)
