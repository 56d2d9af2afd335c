"""What somebody was told, and has read of it. Of runs that she may see no more nothing is told."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from dashboard.notices.models import Notice
from dashboard.notices.words import as_dict
from dashboard.runs.access import visible_runs

SHOWN = 100


def notices_of(user: Any) -> QuerySet[Notice]:
    mine = Notice.objects.filter(user=user, run__in=visible_runs(user).order_by().values("pk"))
    return mine.select_related("run", "by").defer("run__picture")


def latest(user: Any) -> list[dict[str, Any]]:
    return [as_dict(notice) for notice in notices_of(user)[:SHOWN]]


def bell(user: Any) -> dict[str, Any]:
    """How many are unread, and the newest of them."""
    unread = notices_of(user).filter(read_at=None)
    newest = unread.first()
    return {"unread": unread.count(), "newest": as_dict(newest) if newest else None}


def read(user: Any, run_id: str | None = None) -> int:
    """All of them, or those about one run; how many were unread."""
    unread = Notice.objects.filter(user=user, read_at=None)
    return (unread.filter(run=run_id) if run_id else unread).update(read_at=timezone.now())
