"""Charts as JSON, the figure for Plotly and the same in words; and what the panels beside the timeline show."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from dashboard.charts import bubble, loss
from dashboard.charts.panels import panel
from dashboard.charts.rows import step_rows
from dashboard.runs.access import access
from dashboard.runs.models import Run

CHARTS = {"loss": loss.chart, "bubble": bubble.chart}


@require_safe
def run_chart(request: HttpRequest, run_id: str, name: str) -> JsonResponse:
    return _chart(access(request.user, run_id=run_id).run, name)


@login_not_required
@require_safe
def shared_chart(request: HttpRequest, token: str, name: str) -> JsonResponse:
    return _chart(access(request.user, token=token).run, name)


def _chart(run: Run, name: str) -> JsonResponse:
    make = CHARTS.get(name)
    if make is None:
        raise Http404("There is no such chart.")
    response = JsonResponse(make(run.spec, step_rows(run)).as_dict())
    response["Cache-Control"] = "private, no-store"
    return response


@require_safe
def run_panel(request: HttpRequest, run_id: str, name: str) -> JsonResponse:
    return _panel(access(request.user, run_id=run_id).run, name, request)


@login_not_required
@require_safe
def shared_panel(request: HttpRequest, token: str, name: str) -> JsonResponse:
    return _panel(access(request.user, token=token).run, name, request)


def _panel(run: Run, name: str, request: HttpRequest) -> JsonResponse:
    found = panel(run.spec, name)
    if found is None or found.make is None:
        raise Http404("There is no such panel.")
    response = JsonResponse(found.make(run, request.GET.dict()))
    response["Cache-Control"] = "private, no-store"
    return response
