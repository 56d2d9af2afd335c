"""A step's ideal as JSON; `?F=…&B=…&I=…&W=…` gives durations in ms in place of the job's own."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from dashboard.runs.access import Access, access
from dashboard.runs.ideal import NoIdeal
from dashboard.runs.ideal import ideal as ideal_of
from trainer.schedules.actions import Do

_KEPT_SECONDS = 3600


@require_safe
def ideal(request: HttpRequest, run_id: str) -> JsonResponse:
    return _ideal(request, access(request.user, run_id))


@login_not_required
@require_safe
def shared_ideal(request: HttpRequest, token: str) -> JsonResponse:
    return _ideal(request, access(request.user, token=token))


def _ideal(request: HttpRequest, seen: Access) -> JsonResponse:
    given = {do.value: request.GET[do.value] for do in Do if do.value in request.GET}
    try:
        answer = JsonResponse(ideal_of(seen.run.spec, given))
    except NoIdeal as reason:
        return JsonResponse({"error": str(reason)}, status=422)
    answer["Cache-Control"] = f"private, max-age={_KEPT_SECONDS}"  # a job never changes
    return answer
