"""What the API does."""

from __future__ import annotations

import json
from typing import Any

from django.http import Http404, HttpRequest
from django.urls import reverse
from ninja import Query, Status
from ninja.errors import HttpError

from dashboard.api.auth import may
from dashboard.api.describe import LAUNCH_BODY
from dashboard.api.reading import UNREAD, link_out, run_out
from dashboard.api.router import router
from dashboard.api.schemas import Again, Changes, LinkWish, NewLink, Problem, RunOut, Stopped, Whose
from dashboard.roles import Role
from dashboard.runs import curation, links, services
from dashboard.runs.access import access, deleted_runs
from dashboard.runs.intake import checked, from_preset
from dashboard.runs.teams import asked_team, team_for
from dashboard.runs.variants import variant
from trainer.complaints import FieldError, SpecError
from trainer.spec import JobSpec

LAUNCH, MANAGE = may("launch"), may("manage")


@router.post("/runs", response={201: RunOut, **UNREAD}, auth=LAUNCH, summary="Launch a run", openapi_extra=LAUNCH_BODY,
             tags=["launch"])
def launch_run(
    request: HttpRequest, team: int | None = Query(None, description="the number of the team whose it will be; else private"),
) -> Status[dict[str, Any]]:
    spec = _spec(request.body)
    return Status(201, run_out(request, services.launch(spec, request.user, team=asked_team(request.user, team))))


@router.post("/runs/{run_id}/again", response={201: RunOut, **UNREAD}, auth=LAUNCH, tags=["launch"],
             summary="Launch the same job under another schedule")
def again(request: HttpRequest, run_id: str, given: Again) -> Status[dict[str, Any]]:
    run = access(request.user, run_id).run
    team = team_for(request.user, run.team_id)
    return Status(201, run_out(request, services.launch(variant(run.spec, given.schedule), request.user, team=team)))


@router.post("/runs/{run_id}/stop", response={200: Stopped, 409: Stopped, **UNREAD}, auth=MANAGE, tags=["runs"],
             summary="Ask a run to stop")
def stop(request: HttpRequest, run_id: str) -> Status[dict[str, Any]]:
    """200 when it was asked or stopped at once, 409 when there was nothing left to stop."""
    run = access(request.user, run_id, needs=Role.EDITOR).run
    stopped = services.stop(run.pk)
    run.refresh_from_db(fields=["state"])
    return Status(200 if stopped else 409, {"state": run.state, "stopped": stopped})


@router.patch("/runs/{run_id}", response={200: RunOut, **UNREAD}, auth=MANAGE, tags=["runs"],
              summary="Change its name, note, tags, pin or place in the archive")
def change(request: HttpRequest, run_id: str, changes: Changes) -> dict[str, Any]:
    """What is left out stays as it is; `tags` are all tags from then on."""
    run = access(request.user, run_id, needs=Role.EDITOR).run
    given = {key: value for key, value in changes.dict(exclude_unset=True).items() if value is not None}
    curation.change(run, given)
    return run_out(request, access(request.user, run_id).run)


@router.put("/runs/{run_id}/team", response={200: RunOut, **UNREAD}, auth=MANAGE, tags=["sharing"],
            summary="Give it to a team, or make it private")
def give(request: HttpRequest, run_id: str, given: Whose) -> dict[str, Any]:
    run = access(request.user, run_id, needs=Role.OWNER).run
    services.give(run, asked_team(request.user, given.team))
    return run_out(request, access(request.user, run_id).run)


@router.delete("/runs/{run_id}", response={204: None, 409: Problem, **UNREAD}, auth=MANAGE, summary="Delete a run", tags=["runs"])
def delete(request: HttpRequest, run_id: str) -> Status[None]:
    """For a week it can be restored; then it is gone with all it recorded."""
    try:
        curation.delete(access(request.user, run_id, needs=Role.OWNER).run)
    except curation.StillRuns as why:
        raise HttpError(409, str(why)) from None
    return Status(204, None)


@router.post("/runs/{run_id}/restore", response={200: RunOut, **UNREAD}, auth=MANAGE, summary="Bring a deleted run back",
             tags=["runs"])
def restore(request: HttpRequest, run_id: str) -> dict[str, Any]:
    run = deleted_runs(request.user).filter(pk=run_id).first()
    if run is None:
        raise Http404("There is no such run.")
    curation.restore(run)
    return run_out(request, access(request.user, run_id).run)


@router.post("/runs/{run_id}/links", response={201: NewLink, **UNREAD}, auth=MANAGE, summary="Make a share link",
             tags=["sharing"])
def share(request: HttpRequest, run_id: str, given: LinkWish | None = None) -> Status[dict[str, Any]]:
    """The answer alone has its address; it is kept nowhere."""
    run = access(request.user, run_id, needs=Role.EDITOR).run
    link, token = links.share(run, request.user, links.Wish(**given.dict()) if given else None)
    url = request.build_absolute_uri(reverse("shared-run", args=[token]))
    return Status(201, link_out(link) | {"url": url})


@router.delete("/runs/{run_id}/links/{link_id}", response={204: None, **UNREAD}, auth=MANAGE, summary="Take a share link back",
               tags=["sharing"])
def take_back(request: HttpRequest, run_id: str, link_id: int) -> Status[None]:
    link = links.links_of(access(request.user, run_id, needs=Role.EDITOR).run).filter(pk=link_id).first()
    if link is None:
        raise Http404("There is no such link.")
    links.take_back(link)
    return Status(204, None)


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
