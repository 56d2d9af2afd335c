"""A run's exports: what there is, asking for one, and taking it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard.runs.access import access
from dashboard.runs.exports import making
from dashboard.runs.exports.files import READY
from dashboard.runs.exports.formats import FORMATS
from dashboard.runs.models import Run

_PIECE_BYTES = 1 << 18


@never_cache
@require_safe
def exports(request: HttpRequest, run_id: str) -> HttpResponse:
    run = access(request.user, run_id).run
    found = making.states(run)
    rows = [(key, FORMATS[key], state, round(100 * state.share)) for key, state in found.items()]
    context = {"run": run, "rows": rows, "small_spans": making.SMALL_SPANS, "moves": any(state.moves for state in found.values())}
    response = render(request, "runs/exports.html", context)
    if context["moves"]:
        response["Refresh"] = "2"
    return response


@require_POST
def export(request: HttpRequest, run_id: str, key: str) -> HttpResponse:
    """A small one is taken at once, a large one from the page of exports, when it is ready."""
    run = _known(request, run_id, key)
    try:
        state = making.ask(run, key)
    except making.NobodyMakesIt as trouble:
        messages.error(request, str(trouble))
        return redirect("run-exports", run.pk)
    if state.state == READY:
        return redirect("run-export-file", run.pk, key)
    return redirect("run-exports", run.pk)


@never_cache
@require_safe
def export_file(request: HttpRequest, run_id: str, key: str) -> HttpResponseBase:
    return file_of(_known(request, run_id, key), key)


def _known(request: HttpRequest, run_id: str, key: str) -> Run:
    run = access(request.user, run_id).run
    if key not in FORMATS:
        raise Http404("There is no such export.")
    return run


def file_of(run: Run, key: str) -> HttpResponseBase:
    """The file, sent in pieces and never shown: it would be a page of ours. Http404 while there is none."""
    at = making.place(run, key)
    state = at.state()
    if state.state != READY:
        raise Http404("There is no such export yet.")
    response = StreamingHttpResponse(_pieces(at.file), content_type=FORMATS[key].content_type)
    response["Content-Length"] = str(at.file.stat().st_size)
    response["Content-Disposition"] = f'attachment; filename="{at.file.name}"'
    return response


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    """Django would read a whole file before it sends a piece, were this not asynchronous."""
    with path.open("rb") as file:
        while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
            yield piece
