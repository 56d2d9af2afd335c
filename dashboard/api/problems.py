"""Every refusal of the API in one form: a problem (RFC 9457) that names the fields at fault."""

from __future__ import annotations

import math
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, Throttled, ValidationError

from dashboard.api.auth import TooSoon
from dashboard.api.schemas import Complaint, Problem
from dashboard.runs.fleet import FleetUnknown
from trainer.complaints import SpecError


def problem(status: int, title: str, errors: list[dict[str, Any]] | None = None) -> HttpResponse:
    body = Problem(title=title, status=status, errors=[Complaint(**one) for one in errors or []])
    return HttpResponse(body.model_dump_json(), status=status, content_type="application/problem+json")


def explain(api: NinjaAPI) -> None:
    """Let `api` answer what goes wrong with problems."""
    api.exception_handler(SpecError)(_refused)
    api.exception_handler(ValidationError)(_unfit)
    api.exception_handler(Http404)(_missing)
    api.exception_handler(PermissionDenied)(_not_allowed)
    api.exception_handler(HttpError)(_other)
    api.exception_handler(FleetUnknown)(_away)


def _refused(request: HttpRequest, error: SpecError) -> HttpResponse:
    return problem(422, "This cannot be done as it was asked", [one.as_dict() for one in error.errors])


def _unfit(request: HttpRequest, error: ValidationError) -> HttpResponse:
    errors = [{"field": _field(one["loc"]), "given": repr(one.get("input", ""))[:80], "message": one["msg"]}
              for one in error.errors]
    return problem(422, "A parameter does not fit", errors)


def _field(path: tuple[Any, ...]) -> str:
    """Without the words that say where in the request it stood: ("body", "changes", "tags", 0) is tags.0."""
    inner = [str(part) for part in path[1:]]
    return ".".join(inner[1:] if path[0] == "body" and len(inner) > 1 else inner)


def _missing(request: HttpRequest, error: Http404) -> HttpResponse:
    return problem(404, str(error).rstrip(".") or "There is nothing here")


def _away(request: HttpRequest, error: FleetUnknown) -> HttpResponse:
    return problem(503, "Redis does not answer, so nobody knows which workers are there")


def _not_allowed(request: HttpRequest, error: PermissionDenied) -> HttpResponse:
    return problem(403, str(error))


def _other(request: HttpRequest, error: HttpError) -> HttpResponse:
    response = problem(error.status_code, _TITLES.get(str(error), str(error)))
    if error.status_code == 401:
        response["WWW-Authenticate"] = 'Bearer realm="Lockstep"'
    seconds = error.seconds if isinstance(error, TooSoon) else error.wait if isinstance(error, Throttled) else None
    if seconds is not None:
        response["Retry-After"] = str(math.ceil(seconds))
    return response


_TITLES = {
    "Unauthorized": "Log in, or send an API token: Authorization: Bearer …",
    "CSRF check Failed": "A session's request that changes something needs the header X-CSRFToken; a token's does not",
    "Too many requests.": "These are more requests than a user may make in a minute",
    "Cannot parse request body": "This is not JSON, or has half of a letter in it",
}
