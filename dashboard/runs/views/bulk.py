"""What is done to all runs that are ticked in the list; saved views; undoing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from dashboard.roles import Role
from dashboard.runs import curation, services
from dashboard.runs.access import deleted_runs, visible_runs
from dashboard.runs.models import Run, SavedView
from dashboard.runs.rows import Asked
from trainer.complaints import SpecError

MOST_AT_ONCE = 200
MOST_VIEWS = 30


@require_POST
def bulk(request: HttpRequest) -> HttpResponse:
    act = ACTIONS.get(request.POST.get("do", ""))
    if act is None:
        raise Http404("There is no such thing to do.")
    ids = request.POST.getlist("run")[:MOST_AT_ONCE]
    runs = list(_within(request.POST["do"], request.user).filter(pk__in=ids))
    seen = visible_runs(request.user).filter(pk__in=ids).count()
    if len(runs) < seen:
        messages.warning(request, f"{_count(seen - len(runs))} left as they were: your role in their team does not allow it.")
    if runs:
        act(request, runs)
    elif not seen:
        messages.info(request, "No run was ticked.")
    return _back(request)


def _within(do: str, user: Any) -> QuerySet[Run]:
    """Those of which `user` may do that."""
    if do == "restore":
        return deleted_runs(user)
    return visible_runs(user, needs=Role.OWNER if do == "delete" else Role.EDITOR)


def _stop(request: HttpRequest, runs: list[Run]) -> None:
    _say(request, sum(services.stop(run.pk) for run in runs), len(runs), "asked to stop", "had nothing to stop")


def _tag(request: HttpRequest, runs: list[Run]) -> None:
    try:
        names = curation.checked_tags(curation.words_to_tags(request.POST.get("tag", "")))
    except SpecError as error:
        messages.error(request, str(error))
        return
    curation.tag(runs, names)
    _say(request, len(runs) if names else 0, len(runs), f"tagged {', '.join(names)}", "left as they were: no tag was given")


def _archive(request: HttpRequest, runs: list[Run]) -> None:
    curation.archive(runs, True)
    _say(request, len(runs), len(runs), "archived")


def _unarchive(request: HttpRequest, runs: list[Run]) -> None:
    curation.archive(runs, False)
    _say(request, len(runs), len(runs), "taken out of the archive")


def _delete(request: HttpRequest, runs: list[Run]) -> None:
    gone = [run.pk for run in runs if _is_deleted(run)]
    if gone:
        request.session["undo"] = gone
    if len(gone) < len(runs):
        messages.warning(request, f"{_count(len(runs) - len(gone))} not deleted: stop what has not ended first.")


def _is_deleted(run: Run) -> bool:
    try:
        curation.delete(run)
    except curation.StillRuns:
        return False
    return True


def _restore(request: HttpRequest, runs: list[Run]) -> None:
    for run in runs:
        curation.restore(run)
    _say(request, len(runs), len(runs), "back")


ACTIONS: dict[str, Callable[[HttpRequest, list[Run]], None]] = {
    "stop": _stop, "tag": _tag, "archive": _archive, "unarchive": _unarchive, "delete": _delete, "restore": _restore,
}


def take_undo(request: HttpRequest) -> list[str]:
    """Ids of the runs that were deleted a moment ago, once."""
    ids: list[str] = request.session.pop("undo", []) if "undo" in request.session else []
    return ids


@require_POST
def save_view(request: HttpRequest) -> HttpResponse:
    """The list as it stands, by a name; a name that is there already means the new list from now on."""
    name = " ".join(request.POST.get("name", "").split())[:40]
    user: Any = request.user
    if not name:
        messages.error(request, "A view has a name: slow ones, my zero bubbles.")
    elif user.saved_views.exclude(name=name).count() >= MOST_VIEWS:
        messages.error(request, f"{MOST_VIEWS} views are as many as an account may have. Forget one first.")
    else:
        SavedView.objects.update_or_create(user=user, name=name, defaults={"address": _address(request)})
    return _back(request)


@require_POST
def forget_view(request: HttpRequest, view_id: int) -> HttpResponse:
    user: Any = request.user
    if not user.saved_views.filter(pk=view_id).delete()[0]:
        raise Http404("There is no such view.")
    return _back(request)


def _back(request: HttpRequest) -> HttpResponse:
    address = _address(request)
    return redirect(reverse("runs") + (f"?{address}" if address else ""))


def _address(request: HttpRequest) -> str:
    """The list from which the form came; read and written anew, so that it leads nowhere else."""
    given = dict(parse_qsl(request.POST.get("address", "")[:2000]))
    return Asked.of(given, request.user).address()


def _say(request: HttpRequest, done: int, of: int, words: str, otherwise: str = "") -> None:
    if done:
        messages.success(request, f"{_count(done)} {words}.")
    if done < of:
        messages.info(request, f"{_count(of - done)} {otherwise}.")


def _count(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"
