"""The client, to take along: `curl -O SERVER/client/lockstep.py`."""

from __future__ import annotations

from pathlib import Path

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from dashboard.conf import ROOT

CLIENT: Path = ROOT / "dashboard" / "client" / "lockstep.py"


@login_not_required
@require_safe
def client(request: HttpRequest) -> HttpResponse:
    """It holds no secret and knows no address, so anybody may have it."""
    response = HttpResponse(CLIENT.read_bytes(), content_type="text/x-python; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="lockstep.py"'
    return response
