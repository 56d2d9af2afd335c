"""How long the server takes to follow a keystroke in the launch form: check the job, draw it, say what it would be."""

from __future__ import annotations

import time
from dataclasses import replace
from statistics import median
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.test import RequestFactory

from dashboard.runs import fleet, forms
from dashboard.runs.views.launching import check
from trainer.network_misfits import IN_STEPS
from trainer.presets import preset

HELP = "the server's time for one keystroke in the launch form, at 4 and at 1,024 ranks, with modelled links too"

GRIDS: dict[str, dict[str, str]] = {"": {}, "_at_1024": {"grid.dp": "64", "grid.pp": "4", "grid.tp": "4", "batch": "2048"}}
_LINKS = {"links.kind": "modelled", **{f"collectives.{name}": "auto" for name in IN_STEPS}}
GRIDS["_on_links_at_1024"] = GRIDS["_at_1024"] | _LINKS
ROUNDS = 25


def run(options: dict[str, Any]) -> dict[str, Any]:
    """Medians and worst of `check_ms`; each round has another number of steps, so that nothing is known from before."""
    figures: dict[str, Any] = {}
    fleet.workers, kept = lambda client=None: [], fleet.workers  # Redis is not what is measured
    try:
        settings.CONF = replace(settings.CONF, most_ranks=1024)
        settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "testserver"]
        for suffix, changes in GRIDS.items():
            times_ms = [_check_ms(changes | {"steps": str(steps)}) for steps in range(1, ROUNDS + 1)]
            figures |= {f"check_ms{suffix}": round(median(times_ms), 1), f"check_ms_worst{suffix}": round(max(times_ms), 1)}
    finally:
        fleet.workers = kept
    return figures


def _check_ms(changes: dict[str, str]) -> float:
    typed = urlencode(forms.values_of(preset("pipeline-1f1b").spec) | changes)
    request = RequestFactory().post("/launch/check/", typed, content_type="application/x-www-form-urlencoded")
    request.user = AnonymousUser()
    began = time.perf_counter()
    answer = check(request)
    took_ms = (time.perf_counter() - began) * 1000
    assert b'"errors": []' in answer.content, answer.content[:400]
    return took_ms
