"""How long requests take, by the page's name: never by its address, of which there are as many as runs."""

from __future__ import annotations

import time
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from prometheus_client import Histogram

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
NO_PAGE = "other"  # static files, and addresses that lead nowhere

REQUEST_SECONDS = Histogram(
    "lockstep_request_seconds", "From a request's arrival in Django to its answer", ["page", "method", "status"], registry=None,
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)


class Durations:
    """The outermost middleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]):
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        began = time.perf_counter()
        response = self._get_response(request)
        page = request.resolver_match.view_name if request.resolver_match else NO_PAGE
        method = request.method if request.method in METHODS else NO_PAGE
        REQUEST_SECONDS.labels(page, method, response.status_code).observe(time.perf_counter() - began)
        return response
