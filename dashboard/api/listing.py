"""What is done to many runs at once, saved views of the list, and notices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest
from django.urls import reverse
from ninja import Query, Status

from dashboard.api.auth import may
from dashboard.api.list_schemas import Acted, BulkAct, NewView, NoticePage, ReadNotices, ViewOut
from dashboard.api.reading import UNREAD
from dashboard.api.router import router
from dashboard.notices import reading
from dashboard.notices.words import as_dict
from dashboard.runs import curation, door, saved_views, services
from dashboard.runs.access import visible_runs, within
from dashboard.runs.models import Run, SavedView

READ, MANAGE = may("read"), may("manage")
NOTHING_TO_STOP, STILL_RUNS = "there was nothing to stop", "it has not ended: stop it first"


def _stop(run: Run, tags: list[str]) -> str:
    return "" if services.stop(run.pk) else NOTHING_TO_STOP


def _tag(run: Run, tags: list[str]) -> str:
    curation.tag([run], tags)
    return ""


def _archive(run: Run, tags: list[str]) -> str:
    curation.archive([run], True)
    return ""


def _unarchive(run: Run, tags: list[str]) -> str:
    curation.archive([run], False)
    return ""


def _delete(run: Run, tags: list[str]) -> str:
    try:
        curation.delete(run)
    except curation.StillRuns:
        return STILL_RUNS
    return ""


def _restore(run: Run, tags: list[str]) -> str:
    curation.restore(run)
    return ""


ACTS: dict[str, Callable[[Run, list[str]], str]] = {
    "stop": _stop, "tag": _tag, "archive": _archive, "unarchive": _unarchive, "delete": _delete, "restore": _restore,
}


@router.post("/bulk", response={200: Acted, **UNREAD}, auth=MANAGE, tags=["runs"], summary="Do the same to many runs")
def bulk(request: HttpRequest, given: BulkAct) -> dict[str, Any]:
    """Each run alone: what could not be done to one is said, and is no reason to leave the others."""
    tags = curation.checked_tags(given.tags)
    may_do = {run.pk: run for run in within(given.do, request.user).filter(pk__in=given.runs)}
    seen = set(visible_runs(request.user).filter(pk__in=given.runs).values_list("pk", flat=True))
    done, left = [], []
    for run_id in dict.fromkeys(given.runs):
        if run_id in may_do:
            why = ACTS[given.do](may_do[run_id], tags)
        else:
            why = "your role in its team does not allow it" if run_id in seen else "there is no such run"
        if why:
            left.append({"run": run_id, "why": why})
        else:
            done.append(run_id)
    return {"done": done, "left": left}


@router.get("/views", response={200: list[ViewOut], **UNREAD}, auth=READ, tags=["runs"], summary="Your saved views of the list")
def list_views(request: HttpRequest) -> list[dict[str, Any]]:
    return [_view_out(request, one) for one in request.user.saved_views.all()]  # type: ignore[union-attr]  # logged in


@router.post("/views", response={201: ViewOut, **UNREAD}, auth=MANAGE, tags=["runs"], summary="Save a view of the list")
def save_view(request: HttpRequest, given: NewView) -> Status[dict[str, Any]]:
    """`address` is what stands behind the question mark of the list's page; a name that is there means the new one."""
    return Status(201, _view_out(request, saved_views.save(request.user, given.name, given.address)))


@router.delete("/views/{view_id}", response={204: None, **UNREAD}, auth=MANAGE, tags=["runs"], summary="Forget a saved view")
def forget_view(request: HttpRequest, view_id: int) -> Status[None]:
    saved_views.forget(request.user, view_id)
    return Status(204, None)


@router.get("/notices", response={200: NoticePage, **UNREAD}, auth=READ, tags=["notices"],
            summary="What you were told, newest first")
def list_notices(
    request: HttpRequest, page: int = Query(1, ge=1, le=1_000_000), size: int = Query(25, ge=1, le=100),
    unread: bool = Query(False, description="only those that you have not read"),
) -> dict[str, Any]:
    mine = reading.notices_of(request.user)
    found = Paginator(mine.filter(read_at=None) if unread else mine, size).get_page(page)
    return {"count": found.paginator.count, "page": found.number, "pages": found.paginator.num_pages,
            "notices": [as_dict(one) for one in found]}


@router.post("/notices/read", response={200: ReadNotices, **UNREAD}, auth=MANAGE, tags=["notices"],
             summary="You have read them: all, or those about one run")
def read_notices(request: HttpRequest, run: str | None = Query(None)) -> dict[str, int]:
    user: Any = request.user
    if read := reading.read(user, run):
        door.tell_people([user.pk])
    return {"read": read}


def _view_out(request: HttpRequest, view: SavedView) -> dict[str, Any]:
    list_url = request.build_absolute_uri(reverse("runs"))
    return {"id": view.pk, "name": view.name, "address": view.address, "url": f"{list_url}?{view.address}"}
