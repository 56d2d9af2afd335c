"""What is done to all runs that are ticked in the list; saved views; undoing."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from dashboard.runs import curation, saved_views, services
from dashboard.runs.access import visible_runs, within
from dashboard.runs.models import Run
from trainer.complaints import SpecError

MOST_AT_ONCE = 200


@require_POST
def bulk(request: HttpRequest) -> HttpResponse:
    if request.POST.get("do") == "compare":
        return _compare(request.POST.getlist("run")[:MOST_AT_ONCE])
    act = ACTIONS.get(request.POST.get("do", ""))
    if act is None:
        raise Http404("There is no such thing to do.")
    ids = request.POST.getlist("run")[:MOST_AT_ONCE]
    runs = list(within(request.POST["do"], request.user).filter(pk__in=ids))
    seen = visible_runs(request.user).filter(pk__in=ids).count()
    if len(runs) < seen:
        messages.warning(request, f"{_count(seen - len(runs))} left as they were: your role in their team does not allow it.")
    if runs:
        act(request, runs)
    elif not seen:
        messages.info(request, "No run was ticked.")
    return _back(request)


def _compare(ids: list[str]) -> HttpResponse:
    """The comparison's address is one that people hand on: it has the runs and nothing else of the form."""
    return redirect(reverse("runs-compare") + "?" + urlencode([("run", run_id) for run_id in ids]))


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
    try:
        saved_views.save(request.user, request.POST.get("name", ""), _address(request))
    except SpecError as error:
        messages.error(request, str(error))
    return _back(request)


@require_POST
def forget_view(request: HttpRequest, view_id: int) -> HttpResponse:
    saved_views.forget(request.user, view_id)
    return _back(request)


def _back(request: HttpRequest) -> HttpResponse:
    address = _address(request)
    return redirect(reverse("runs") + (f"?{address}" if address else ""))


def _address(request: HttpRequest) -> str:
    """The list from which the form came; read and written anew, so that it leads nowhere else."""
    return saved_views.written_anew(request.POST.get("address", ""), request.user)


def _say(request: HttpRequest, done: int, of: int, words: str, otherwise: str = "") -> None:
    if done:
        messages.success(request, f"{_count(done)} {words}.")
    if done < of:
        messages.info(request, f"{_count(of - done)} {otherwise}.")


def _count(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"
