"""What is done to one run: stop it, change what is said of it, launch its job again under another schedule."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from dashboard.roles import Role
from dashboard.runs import curation, services
from dashboard.runs.access import access
from dashboard.runs.teams import team_for
from dashboard.runs.variants import variant
from trainer.complaints import SpecError


@require_POST
def stop(request: HttpRequest, run_id: str) -> HttpResponse:
    run = access(request.user, run_id, needs=Role.EDITOR).run
    stopped = services.stop(run.pk)
    run.refresh_from_db(fields=["state"])
    if request.accepts("text/html"):
        if not stopped:
            messages.info(request, f"There was nothing to stop: the run is {run.state}.")
        return redirect("run", run.pk)
    return JsonResponse({"state": run.state, "stopped": stopped}, status=200 if stopped else 409)


@require_POST
def change(request: HttpRequest, run_id: str) -> HttpResponse:
    """Any of name, note, tags, pinned and archived, as a form has them."""
    run = access(request.user, run_id, needs=Role.EDITOR).run
    given: dict[str, Any] = {key: request.POST[key].replace("\r\n", "\n") for key in ("name", "note") if key in request.POST}
    if "tags" in request.POST:
        given["tags"] = curation.words_to_tags(request.POST["tags"])
    given |= {key: request.POST[key] == "yes" for key in ("pinned", "archived") if key in request.POST}
    try:
        curation.change(run, given)
    except SpecError as error:
        for one in error.errors:
            messages.error(request, str(one))
    return redirect("run", run.pk)


@require_POST
def again(request: HttpRequest, run_id: str) -> HttpResponse:
    """The same job, other schedule."""
    run = access(request.user, run_id).run
    try:
        spec = variant(run.spec, request.POST.get("schedule", ""))
    except SpecError as error:
        messages.error(request, str(error))
        return redirect("run", run.pk)
    return redirect("run", services.launch(spec, request.user, team=team_for(request.user, run.team_id)).pk)
