"""What the API shows."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query

from dashboard.api.auth import may
from dashboard.api.describe import answers_in
from dashboard.api.router import router
from dashboard.api.schemas import (
    ComparisonOut,
    LinkOut,
    Me,
    PresetOut,
    Problem,
    RunOut,
    RunPage,
    StepPage,
    WorkerOut,
)
from dashboard.charts.rows import step_rows
from dashboard.roles import Role
from dashboard.runs import comparison, fleet, services, state
from dashboard.runs.access import access
from dashboard.runs.drawings import drawing
from dashboard.runs.finding import NEWEST_FIRST, SORTS, find, page_of
from dashboard.runs.links import links_of
from dashboard.runs.models import Run, ShareLink
from dashboard.runs.query import parse
from dashboard.runs.state import unix_ms
from dashboard.runs.views.logs import log_of
from trainer.complaints import FieldError, SpecError, choices
from trainer.presets import PRESETS

READ = may("read")
UNREAD = {401: Problem, 403: Problem, 404: Problem, 422: Problem, 429: Problem}


@router.get("/me", response={200: Me, **UNREAD}, auth=READ, summary="Who asks", tags=["account"])
def me(request: HttpRequest) -> dict[str, Any]:
    memberships = request.user.memberships.select_related("team").order_by("team__name")  # type: ignore[union-attr]  # logged in
    return {"name": request.user.get_username(), "is_administrator": request.user.is_superuser,
            "teams": [{"id": one.team_id, "name": one.team.name, "role": one.role} for one in memberships]}


@router.get("/presets", response={200: list[PresetOut], **UNREAD}, auth=READ, summary="Jobs to start from", tags=["launch"])
def presets(request: HttpRequest) -> list[dict[str, Any]]:
    return [
        {"key": one.key, "title": one.title, "shows": one.shows, "ranks": one.spec.ranks, "spec": one.spec.model_dump()}
        for one in PRESETS.values()
    ]


@router.get("/workers", response={200: list[WorkerOut], 503: Problem, **UNREAD}, auth=READ, summary="Workers that are there",
            tags=["launch"])
def workers(request: HttpRequest) -> Any:
    return fleet.workers()


@router.get("/runs", response={200: RunPage, **UNREAD}, auth=READ, summary="Runs, newest first unless sorted", tags=["runs"])
def list_runs(
    request: HttpRequest, page: int = Query(1, ge=1, le=1_000_000), size: int = Query(25, ge=1, le=100),
    q: str = Query("", description="words and conditions, as in the page's box: `state:failed bubble>30% tag:baseline`"),
    sort: str = Query(NEWEST_FIRST, description="a column, with a minus for the largest first: " + ", ".join(SORTS)),
) -> dict[str, Any]:
    query = parse(q, request.user)
    errors = list(query.errors)
    if sort.removeprefix("-") not in SORTS:
        errors.append(FieldError("sort", sort, f"{choices(SORTS)} would do, also with a minus"))
    if errors:
        raise SpecError(errors)
    found, runs = page_of(find(request.user, query, sort), page, size)
    places = services.places_in_queue()
    shown = [run_out(request, run, places.get(run.pk, 0)) for run in runs]
    return {"count": found.paginator.count, "page": found.number, "pages": found.paginator.num_pages, "runs": shown}


@router.get("/runs/{run_id}", response={200: RunOut, **UNREAD}, auth=READ, summary="One run", tags=["runs"])
def show(request: HttpRequest, run_id: str) -> dict[str, Any]:
    return run_out(request, access(request.user, run_id).run)


@router.get("/runs/{run_id}/steps", response={200: StepPage, **UNREAD}, auth=READ, summary="Figures of its steps", tags=["runs"])
def steps(
    request: HttpRequest, run_id: str, after: int = Query(-1, ge=-1, description="the last step that you have"),
    size: int = Query(500, ge=1, le=2000),
) -> dict[str, Any]:
    """Of steps after `after`, in their order; `more` says that the next call finds some at once."""
    rows = [row for row in step_rows(access(request.user, run_id).run) if row["step"] > after]
    return {"steps": rows[:size], "more": len(rows) > size}


@router.get("/runs/{run_id}/logs/{rank}", response={200: None, **UNREAD}, auth=READ, tags=["runs"],
            summary="What a rank printed, the last 64 KB", openapi_extra=answers_in("text/plain"))
def log(request: HttpRequest, run_id: str, rank: int) -> HttpResponse:
    return log_of(access(request.user, run_id), rank)


@router.get("/runs/{run_id}/picture", response={200: None, **UNREAD}, auth=READ, tags=["runs"],
            summary="Its small picture, as SVG", openapi_extra=answers_in("image/svg+xml"))
def picture(request: HttpRequest, run_id: str) -> HttpResponse:
    run = access(request.user, run_id).run
    return HttpResponse(drawing(bytes(run.picture or b"")), content_type="image/svg+xml")


@router.get("/runs/{run_id}/links", response={200: list[LinkOut], **UNREAD}, auth=READ, tags=["sharing"],
            summary="Share links that work")
def links(request: HttpRequest, run_id: str) -> list[dict[str, Any]]:
    run = access(request.user, run_id, needs=Role.EDITOR).run
    return [link_out(link) for link in links_of(run)]


@router.get("/compare", response={200: ComparisonOut, **UNREAD}, auth=READ, tags=["runs"],
            summary="Two to four runs side by side")
def compare(request: HttpRequest, run: Query[list[str]]) -> dict[str, Any]:
    """`run` is given two to four times, with ids; differences are against the first."""
    runs = [access(request.user, one).run for one in comparison.wanted(run)]
    return comparison.compare(runs, [step_rows(one) for one in runs]).as_dict()


def run_out(request: HttpRequest, run: Run, place: int | None = None) -> dict[str, Any]:
    return state.as_dict(run, place) | {
        "url": request.build_absolute_uri(reverse("run", args=[run.pk])),
        "note": run.note, "tags": [tag.name for tag in run.tags.all()],
        "pinned": run.pinned_at is not None, "archived": run.archived_at is not None,
        "owner": run.owner.get_username() if run.owner else None,
        "team": {"id": run.team.pk, "name": run.team.name} if run.team else None,
    }


def link_out(link: ShareLink) -> dict[str, Any]:
    return {
        "id": link.pk, "name": link.name, "view": link.view, "with_comments": link.with_comments, "uses": link.uses,
        "created": unix_ms(link.created_at), "last_used": unix_ms(link.last_used_at), "ends": unix_ms(link.ends_at),
        "by": link.created_by.get_username() if link.created_by else None,
    }
