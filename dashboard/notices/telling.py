"""Who is told of what: people on their pages, teams' tools by webhooks."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone

from dashboard.notices.models import Delivery, Kind, Notice, Webhook
from dashboard.runs import door

KEPT = timedelta(days=90)
LONGEST_WORDS = 200


def run_ended(run: Any) -> None:
    """Its owner hears of it, and the tools of its team."""
    if run.owner_id is not None:
        _tell(run, [run.owner_id], Kind(run.state), words=run.reason)
    _to_tools(run, f"run.{run.state}", {"reason": run.reason, "figures": run.figures, "steps_done": run.steps_done})


def mentioned(run: Any, by: Any, names: Iterable[str], text: str) -> None:
    names = sorted(set(names) - {by.get_username()})
    if names:
        _tell(run, _ids(names), Kind.MENTIONED, by, text)
        _to_tools(run, "comment.mentioned", {"by": by.get_username(), "names": names, "text": text})


def answered(run: Any, by: Any, names: Iterable[str], text: str) -> None:
    """Those who spoke in the thread."""
    _tell(run, _ids(set(names) - {by.get_username()}), Kind.ANSWERED, by, text)


def forget(run_id: str) -> None:
    """What tools were or are to be told of a run that is removed; notices go with its row."""
    Delivery.objects.filter(body__run=run_id).delete()


def _ids(names: Iterable[str]) -> list[int]:
    return list(get_user_model().objects.filter(username__in=list(names)).values_list("pk", flat=True))


def _tell(run: Any, user_ids: Iterable[int], kind: Kind, by: Any = None, words: str = "") -> None:
    short = " ".join(words.split())
    short = short if len(short) <= LONGEST_WORDS else short[: LONGEST_WORDS - 1] + "…"
    ids = list(user_ids)
    Notice.objects.filter(user__in=ids, made_at__lt=timezone.now() - KEPT).delete()
    Notice.objects.bulk_create(Notice(user_id=user_id, run=run, kind=kind, by=by, words=short) for user_id in ids)
    transaction.on_commit(lambda: door.tell_people(ids))


def _to_tools(run: Any, event: str, about: dict[str, Any]) -> None:
    if run.team_id is None:
        return
    path = f"/runs/{run.pk}/"
    body = {
        "event": event, "at": round(timezone.now().timestamp() * 1000), "run": run.pk, "name": run.name, "state": run.state,
        "path": path, "url": settings.CONF.origins[0] + path if settings.CONF.origins else None, **about,
    }
    hooks = Webhook.objects.filter(team=run.team_id)
    Delivery.objects.bulk_create(Delivery(webhook=hook, event=event, body=body, due_at=timezone.now()) for hook in hooks)
