"""What was said of a run since its page looked; written through the API, by the page as by programs."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import AnonymousUser
from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.comments import services
from dashboard.runs.access import Access, access


@never_cache
@require_safe
def comments(request: HttpRequest, run_id: str) -> JsonResponse:
    seen = access(request.user, run_id)
    return JsonResponse(services.changes(seen.run, _after(request), request.user) | {"people": services.people_of(seen.run)})


@login_not_required
@never_cache
@require_safe
def shared_comments(request: HttpRequest, token: str) -> JsonResponse:
    seen = access(request.user, token=token)
    if not sees_comments(seen):
        raise Http404("There is no such page.")
    return JsonResponse(services.changes(seen.run, _after(request), AnonymousUser()) | {"people": []})


def sees_comments(seen: Access) -> bool:
    """A link shows them only where its maker wished so."""
    return seen.link is None or seen.link.with_comments


def _after(request: HttpRequest) -> int:
    given = request.GET.get("after", "0")
    if not given.isdecimal() or len(given) > 9:
        raise Http404("There is no such revision.")
    return int(given)
