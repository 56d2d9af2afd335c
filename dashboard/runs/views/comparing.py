"""Two to four runs side by side."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.charts import losses
from dashboard.charts.rows import step_rows
from dashboard.runs import comparison
from dashboard.runs.access import access
from dashboard.runs.aligned import aligned
from dashboard.runs.models import Run
from trainer.complaints import FieldError, SpecError


@never_cache
@require_safe
def compare(request: HttpRequest) -> HttpResponse:
    try:
        runs = _runs(request)
    except SpecError as error:
        return render(request, "runs/compare.html", {"error": str(error)}, status=422)
    found = comparison.compare(runs, [step_rows(run) for run in runs])
    return render(request, "runs/compare.html", {
        "found": found, "query": "&".join(f"run={run.pk}" for run in runs), "test": found.as_dict()["test"],
        "paced": [run for run in runs if run.spec_json["pace"]["kind"] != "real"],
    })


@never_cache
@require_safe
def loss_chart(request: HttpRequest) -> JsonResponse:
    try:
        runs = _runs(request)
    except SpecError as error:
        return JsonResponse({"error": str(error)}, status=422)
    return JsonResponse(losses.chart(runs, [step_rows(run) for run in runs]).as_dict())


@never_cache
@require_safe
def step(request: HttpRequest) -> JsonResponse:
    """One step of each, `?step=`, or the last that all have."""
    given = request.GET.get("step")
    try:
        if given is not None and not (given.isascii() and given.isdecimal() and len(given) < 10):
            raise SpecError([FieldError("step", given[:40], "the number of a step would do")])
        return JsonResponse(aligned(_runs(request), None if given is None else int(given)))
    except SpecError as error:
        return JsonResponse({"error": str(error)}, status=422)


def _runs(request: HttpRequest) -> list[Run]:
    return [access(request.user, run_id).run for run_id in comparison.wanted(request.GET.getlist("run"))]
