"""What is asked of a run's store by an address: by whom, its fields, and for how long a browser may keep the answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_safe

from dashboard.runs.access import access
from dashboard.runs.models import Run
from trainer.trace.store import StoreReader

_NUMBER = re.compile(r"-?\d{1,16}\Z", re.ASCII)


View = Callable[..., HttpResponse]


def by_id_and_by_link(answer: Callable[[HttpRequest, Run], HttpResponse]) -> tuple[View, View]:
    """The views that answer who may see a run, and who holds a link to it."""

    @require_safe
    def by_id(request: HttpRequest, run_id: str) -> HttpResponse:
        return answer(request, access(request.user, run_id=run_id).run)

    @login_not_required
    @require_safe
    def by_link(request: HttpRequest, token: str) -> HttpResponse:
        return answer(request, access(request.user, token=token).run)

    return by_id, by_link


class NotUnderstood(ValueError):
    def __init__(self, field: str, given: str, would_do: str):
        super().__init__(f"{field}={given}: {would_do}")
        self.answer = {"field": field, "given": given, "message": would_do}


def number(given: Any, field: str, default: int, least: int, most: int) -> int:
    """NotUnderstood for what is no whole number between `least` and `most`."""
    text = given.get(field)
    if text is None:
        return default
    if not _NUMBER.match(text) or not least <= int(text) <= most:
        raise NotUnderstood(field, text, f"a whole number from {least} to {most} would do")
    return int(text)


def let_keep(response: HttpResponse, reader: StoreReader) -> HttpResponse:
    """What is sealed for good never changes; before that browsers ask whether it did."""
    response["Cache-Control"] = "private, max-age=31536000, immutable" if reader.manifest.complete else "private, no-cache"
    patch_vary_headers(response, ["Cookie"])
    return response
