"""The one door to the workers and to the pages: tasks by name, and ticks that something changed."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import cache
from typing import Any

from asgiref.sync import async_to_sync
from celery import Celery
from channels.layers import get_channel_layer
from django.conf import settings

log = logging.getLogger(__name__)

RUN_TASK = "workers.run"
EXPORT_TASK = "dashboard.export"
EXPORTS_QUEUE = "exports"
CHANGED = "run.changed"


def queue_of(device: str) -> str:
    return f"runs.{device}"


def group_of(run_id: str) -> str:
    """The channel-layer group that hears when this run changed."""
    return f"run.{run_id}"


@cache
def _celery() -> Celery:
    app = Celery(broker=settings.CONF.redis_url)
    app.conf.update(task_ignore_result=True, broker_connection_timeout=2, broker_transport_options={"socket_timeout": 5})
    return app


def put_in_queue(run_id: str, device: str) -> None:
    """Put the run before the workers. If Redis is away the run stays queued in the database, and the
    reaper puts it in the queue when Redis is back."""
    try:
        _celery().send_task(RUN_TASK, [run_id], queue=queue_of(device), retry=False)
    except Exception as error:  # kombu raises whatever its transport raised
        log.warning("run %s is queued, but the broker did not answer: %s", run_id, error)


def ask_for_export(run_id: str, key: str) -> bool:
    """Put a large export before the process that makes them; whether the broker took it."""
    try:
        _celery().send_task(EXPORT_TASK, [run_id, key], queue=EXPORTS_QUEUE, retry=False)
    except Exception as error:  # kombu raises whatever its transport raised
        log.warning("nobody could be asked to export run %s: %s", run_id, error)
        return False
    return True


def tell(run_id: str) -> None:
    """A tick: whoever looks at this run should look again. Lost when Redis is away; the page asks again by itself."""
    _tick([group_of(run_id)], CHANGED)


ADMINISTRATORS_GROUP = "list.administrators"


def people_group(user_id: int) -> str:
    """The group that hears when this person has news."""
    return f"person.{user_id}"


def list_groups_of(user: Any) -> list[str]:
    """The groups that hear when a run appears in this person's list, or changes its state there."""
    teams = [f"list.team.{team_id}" for team_id in user.memberships.values_list("team_id", flat=True)]
    return [f"list.of.{user.pk}", *teams, *([ADMINISTRATORS_GROUP] if user.is_superuser else [])]


def tell_lists(run: Any) -> None:
    """Whoever has the run in her list should look at the list again."""
    groups = [ADMINISTRATORS_GROUP]
    groups += [f"list.of.{run.owner_id}"] if run.owner_id else []
    groups += [f"list.team.{run.team_id}"] if run.team_id else []
    _tick(groups, "list.changed")


def tell_people(user_ids: Iterable[int]) -> None:
    """These have notices that they had not, or have read some."""
    _tick([people_group(user_id) for user_id in user_ids], "notices.changed")


def tell_of_teams(user_id: int) -> None:
    """This person is in other teams than before."""
    _tick([people_group(user_id)], "teams.changed")


def _tick(groups: list[str], kind: str) -> None:
    layer = get_channel_layer()
    try:
        for group in groups:
            async_to_sync(layer.group_send)(group, {"type": kind})
    except Exception as error:
        log.info("no tick %s for %s: %s", kind, groups, error)
