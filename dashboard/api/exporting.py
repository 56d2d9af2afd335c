"""Exports by the API: ask for one, see how far it is, take it."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase
from ninja import Status
from ninja.errors import HttpError

from dashboard.api.auth import may
from dashboard.api.describe import answers_in
from dashboard.api.reading import UNREAD
from dashboard.api.router import router
from dashboard.api.schemas import ExportOut, Problem
from dashboard.runs.access import access
from dashboard.runs.exports import making
from dashboard.runs.exports.files import READY, State
from dashboard.runs.exports.formats import FORMATS
from dashboard.runs.models import Run
from dashboard.runs.views.exporting import file_of

READ = may("read")


@router.get("/runs/{run_id}/exports", response={200: list[ExportOut], **UNREAD}, auth=READ, tags=["exports"],
            summary="Forms in which it can be taken away, and how far each is")
def exports(request: HttpRequest, run_id: str) -> list[dict[str, Any]]:
    return [_out(key, state) for key, state in making.states(access(request.user, run_id).run).items()]


@router.post("/runs/{run_id}/exports/{key}", response={200: ExportOut, 202: ExportOut, 503: Problem, **UNREAD}, auth=READ,
             tags=["exports"], summary="Ask for an export")
def make(request: HttpRequest, run_id: str, key: str) -> Status[dict[str, Any]]:
    """200 when it is ready, with all that is sealed by now; 202 while it is being made: ask again."""
    run = _known(request, run_id, key)
    try:
        state = making.ask(run, key)
    except making.NobodyMakesIt as trouble:
        raise HttpError(503, str(trouble)) from None
    return Status(202 if state.moves else 200, _out(key, state))


@router.get("/runs/{run_id}/exports/{key}/file", auth=READ, tags=["exports"], summary="The file of an export that is ready",
            response={200: None, **UNREAD}, openapi_extra=answers_in(*(one.content_type for one in FORMATS.values())))
def export_file(request: HttpRequest, run_id: str, key: str) -> HttpResponseBase:
    return file_of(_known(request, run_id, key), key)


def _known(request: HttpRequest, run_id: str, key: str) -> Run:
    run = access(request.user, run_id).run
    if key not in FORMATS:
        raise Http404("There is no such export; " + ", ".join(FORMATS) + " are there.")
    return run


def _out(key: str, state: State) -> dict[str, Any]:
    one = FORMATS[key]
    return {"format": key, "title": one.title, "for_what": one.for_what, "state": state.state, "share": state.share,
            "bytes": state.bytes if state.state == READY else None, "reason": state.reason}
