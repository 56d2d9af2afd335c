"""What a rank printed."""

from __future__ import annotations

import os
from pathlib import Path

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.runs.access import Access, access
from trainer.folder import log_file, run_folder

TAIL_BYTES = 65_536


@never_cache
@require_safe
def log(request: HttpRequest, run_id: str, rank: int) -> HttpResponse:
    return log_of(access(request.user, run_id), rank)


@login_not_required
@never_cache
@require_safe
def shared_log(request: HttpRequest, token: str, rank: int) -> HttpResponse:
    return log_of(access(request.user, token=token), rank)


def log_of(seen: Access, rank: int) -> HttpResponse:
    if rank >= seen.run.spec.ranks:
        raise Http404("There is no such rank.")
    text = shown(log_file(run_folder(settings.CONF.home, seen.run.pk), rank))
    return HttpResponse(text, content_type="text/plain; charset=utf-8")


def shown(path: Path) -> str:
    """The end of a log, or that there is none."""
    return tail(path) or "(This rank has printed nothing.)\n"


def tail(path: Path) -> str:
    """The end of a log, from the start of a line; it says when that is not all."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - TAIL_BYTES, 0))
            data = file.read(TAIL_BYTES)
    except FileNotFoundError:
        return ""
    if size <= TAIL_BYTES:
        return data.decode(errors="replace")
    _, _, whole_lines = data.partition(b"\n")
    return f"(The last {TAIL_BYTES // 1024} KB of {size:,} bytes.)\n" + (whole_lines or data).decode(errors="replace")
