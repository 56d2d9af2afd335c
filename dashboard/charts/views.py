"""Charts as JSON, the figure for Plotly and the same in words; and what the panels beside the timeline show."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, JsonResponse, QueryDict
from django.views.decorators.http import require_safe

from dashboard.charts import bubble, learning, loss, memory
from dashboard.charts.chart import Chart
from dashboard.charts.memory_rows import recent
from dashboard.charts.panels import panel
from dashboard.charts.rows import step_rows
from dashboard.runs.access import access
from dashboard.runs.models import Run

OF_STEPS = {
    "loss": loss.chart, "bubble": bubble.chart, "learning-rate": learning.learning_rate, "grad-norm": learning.grad_norm,
    "tokens": learning.tokens,
}


@require_safe
def run_chart(request: HttpRequest, run_id: str, name: str) -> JsonResponse:
    return _answer(access(request.user, run_id=run_id).run, name, request.GET)


@login_not_required
@require_safe
def shared_chart(request: HttpRequest, token: str, name: str) -> JsonResponse:
    return _answer(access(request.user, token=token).run, name, request.GET)


def _answer(run: Run, name: str, query: QueryDict) -> JsonResponse:
    response = JsonResponse(_chart(run, name, query).as_dict())
    response["Cache-Control"] = "private, no-store"
    return response


def _chart(run: Run, name: str, query: QueryDict) -> Chart:
    if name in OF_STEPS:
        return OF_STEPS[name](run.spec, step_rows(run))
    if name == "memory":
        rank = query.get("rank", "0")
        if not rank.isdecimal() or int(rank) >= run.spec.ranks:
            raise Http404(f"There is no such rank; 0 to {run.spec.ranks - 1} would do.")
        return memory.chart(run.spec, int(rank), recent(run, int(rank)))
    raise Http404("There is no such chart.")


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
