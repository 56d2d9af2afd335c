"""Whether every part answers, for load balancers and for people in doubt."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable

import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.runs import fleet
from trainer.folder import runs_folder
from trainer.trace.stream import RECORDER

OK = "ok"


@login_not_required
@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 when the pages can work (database and Redis), else 503. A missing worker or recorder is said."""
    parts = {"database": _database(), "redis": _redis(), "worker": _worker(), "recorder": _recorder()}
    well = parts["database"] == OK and parts["redis"] == OK
    return JsonResponse({"ok": well, **parts}, status=200 if well else 503)


@login_not_required
@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when this server can do all that is its own; else 503, and which of its needs is not met."""
    needs: dict[str, Callable[[], str]] = {
        "database": _database, "migrations": _migrations, "redis": _redis, "store": _store,
    }
    found = {name: look() for name, look in needs.items()}
    failed = [name for name, words in found.items() if words != OK]
    return JsonResponse({"ok": not failed, "failed": failed, **found}, status=503 if failed else 200)


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "away"
    return OK


def _migrations() -> str:
    try:
        executor = MigrationExecutor(connection)
        missing = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    except DatabaseError:
        return "unknown"
    return f"{missing} not applied" if missing else OK


def _store() -> str:
    """By writing: rights, a full disk and one that is mounted read-only all show in nothing else."""
    folder = runs_folder(settings.CONF.home)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"ready?")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return f"cannot be written: {error.strerror}"
    return OK


def _redis() -> str:
    try:
        _client().ping()
    except (redis.RedisError, ValueError):
        return "away"
    return OK


def _worker() -> str:
    try:
        workers = fleet.workers()
    except fleet.FleetUnknown:
        return "unknown"
    if not workers:
        return "none"
    return OK if any(worker.host_ready for worker in workers) else "loading"


def _recorder() -> str:
    try:
        return OK if _client().exists(RECORDER) else "none"
    except (redis.RedisError, ValueError):
        return "unknown"


def _client() -> redis.Redis:
    return redis.Redis.from_url(settings.CONF.redis_url, socket_timeout=2, socket_connect_timeout=2)
