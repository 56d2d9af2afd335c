"""Logs for programs: a JSON object a line, with the run that the line is about."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest, HttpResponse

_run: ContextVar[str] = ContextVar("run", default="")


@contextmanager
def about_run(run_id: str) -> Iterator[None]:
    """Whatever is logged inside, by whichever module, is about this run."""
    before = _run.set(run_id)
    try:
        yield
    finally:
        _run.reset(before)


def now_about(run_id: str) -> None:
    """From here on, as long as this request, socket or task lasts."""
    _run.set(run_id)


class RunOfRequest:
    """Middleware: what a request logs is about the run in its address, or the one that its link opens."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]):
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with about_run(""):
            return self._get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: dict[str, Any]) -> None:
        now_about(str(kwargs.get("run_id", "")))


class AddRun(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.run = _run.get()
        return True


class JsonLines(logging.Formatter):
    """`time` (ISO 8601, UTC), `level`, `logger`, `message`, `process`; `run` and `exception` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "process": record.process,
        }
        if run := getattr(record, "run", ""):
            fields["run"] = run
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)
