"""Stopping a run."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from dashboard.runs import services
from dashboard.runs.access import access


@require_POST
def stop(request: HttpRequest, run_id: str) -> HttpResponse:
    run = access(request.user, run_id).run
    stopped = services.stop(run.pk)
    run.refresh_from_db(fields=["state"])
    if request.accepts("text/html"):
        if not stopped:
            messages.info(request, f"There was nothing to stop: the run is {run.state}.")
        return redirect("run", run.pk)
    return JsonResponse({"state": run.state, "stopped": stopped}, status=200 if stopped else 409)
