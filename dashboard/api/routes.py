"""The HTTP API, version 1: what the pages do, for programs. Sessions and CSRF as on the pages."""

from __future__ import annotations

import json
from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Status
from ninja.errors import ValidationError
from ninja.security import django_auth

from dashboard.api.describe import LAUNCH_BODY, DescribedAPI, Reference
from dashboard.api.schemas import Complaint, PresetOut, Problem, RunOut, RunPage, Stopped
from dashboard.runs import services, state
from dashboard.runs.access import access, visible_runs
from dashboard.runs.intake import checked, from_preset
from dashboard.runs.models import Run
from trainer.complaints import FieldError, SpecError
from trainer.presets import PRESETS
from trainer.spec import JobSpec

api = DescribedAPI(
    title="Lockstep",
    version="1",
    description="Launch and follow runs. A refusal is a problem (RFC 9457) with a list of `errors`: "
    "which field, what was given, and what would do.",
    auth=django_auth,
    docs=Reference(),
    urls_namespace="api",
)


@api.get("/presets", response=list[PresetOut], summary="Jobs to start from")
def presets(request: HttpRequest) -> list[dict[str, Any]]:
    return [
        {"key": one.key, "title": one.title, "shows": one.shows, "ranks": one.spec.ranks, "spec": one.spec.model_dump()}
        for one in PRESETS.values()
    ]


@api.get("/runs", response=RunPage, summary="Runs, newest first")
def list_runs(
    request: HttpRequest, page: int = Query(1, ge=1, le=1_000_000), size: int = Query(25, ge=1, le=100)
) -> dict[str, Any]:
    found = Paginator(visible_runs(request.user), size).get_page(page)
    places = services.places_in_queue()
    runs = [_shown(request, run, places.get(run.pk, 0)) for run in found.object_list]
    return {"count": found.paginator.count, "page": found.number, "pages": found.paginator.num_pages, "runs": runs}


@api.post("/runs", response={201: RunOut, 422: Problem}, summary="Launch a run", openapi_extra=LAUNCH_BODY)
def launch(request: HttpRequest) -> Status[dict[str, Any]]:
    run = services.launch(_spec(request.body), request.user)
    return Status(201, _shown(request, run))


@api.get("/runs/{run_id}", response={200: RunOut, 404: Problem}, summary="One run")
def show(request: HttpRequest, run_id: str) -> dict[str, Any]:
    return _shown(request, access(request.user, run_id).run)


@api.post("/runs/{run_id}/stop", response={200: Stopped, 404: Problem, 409: Stopped}, summary="Ask a run to stop")
def stop(request: HttpRequest, run_id: str) -> Status[dict[str, Any]]:
    """200 when it was asked or stopped at once, 409 when there was nothing left to stop."""
    run = access(request.user, run_id).run
    stopped = services.stop(run.pk)
    run.refresh_from_db(fields=["state"])
    return Status(200 if stopped else 409, {"state": run.state, "stopped": stopped})


def _spec(body: bytes) -> JobSpec:
    """A body is a JobSpec, or names a preset and what to change in it."""
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or "preset" not in given:
        return checked(body)
    unknown = sorted(set(given) - {"preset", "set"})
    if unknown:
        message = "beside `preset` only `set` has a meaning; put changes into it"
        raise SpecError([FieldError(field, given[field], message) for field in unknown])
    return from_preset(given["preset"], given.get("set"))


def _shown(request: HttpRequest, run: Run, place: int | None = None) -> dict[str, Any]:
    return state.as_dict(run, place) | {"url": request.build_absolute_uri(reverse("run", args=[run.pk]))}


def _problem(status: int, title: str, errors: list[dict[str, Any]]) -> HttpResponse:
    body = Problem(title=title, status=status, errors=[Complaint(**one) for one in errors])
    return HttpResponse(body.model_dump_json(), status=status, content_type="application/problem+json")


@api.exception_handler(SpecError)
def _refused(request: HttpRequest, error: SpecError) -> HttpResponse:
    return _problem(422, "This job cannot run", [one.as_dict() for one in error.errors])


@api.exception_handler(ValidationError)
def _unfit(request: HttpRequest, error: ValidationError) -> HttpResponse:
    errors = [{"field": str(one["loc"][-1]), "given": repr(one.get("input", "")), "message": one["msg"]} for one in error.errors]
    return _problem(422, "A parameter does not fit", errors)


@api.exception_handler(Http404)
def _missing(request: HttpRequest, error: Http404) -> HttpResponse:
    return _problem(404, "There is no such run", [])
