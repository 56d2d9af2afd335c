"""Windows of what is sealed of a run: from, to, lanes, pixels in; bytes for the timeline out.

An answer of a run that is sealed for good never changes, and browsers keep it; before that they ask whether
it did, which costs no reading.
"""

from __future__ import annotations

import re
from dataclasses import astuple
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified, JsonResponse

from dashboard.live import window_message
from dashboard.live.asked import NotUnderstood, by_id_and_by_link, let_keep, number
from dashboard.runs.models import Run
from dashboard.runs.stored import store_of
from trainer.trace import windows
from trainer.trace.store import StoreReader
from trainer.trace.windows import MOST_PIXELS, Window

LATEST_NS = 2**53
_LANES = re.compile(r"(\d{1,7})-(\d{1,7})\Z", re.ASCII)


def _answer(request: HttpRequest, run: Run) -> HttpResponse:
    reader = store_of(run.pk)
    try:
        window = asked(reader, request.GET)
    except NotUnderstood as bad:
        return JsonResponse({"errors": [bad.answer]}, status=400)
    found = windows.segments_in(reader, window)
    last = found[-1].number if found else 0
    tag = '"' + "-".join(map(str, (window_message.MAGIC.decode(), run.pk, *astuple(window), len(found), last))) + '"'
    is_same = request.headers.get("If-None-Match") == tag
    response = HttpResponseNotModified() if is_same else _fresh(reader, window, found, last)
    response["ETag"] = tag
    return let_keep(response, reader)


run_window, shared_window = by_id_and_by_link(_answer)


def _fresh(reader: StoreReader, window: Window, found: list[Any], last: int) -> HttpResponse:
    if windows.is_few(found, window):
        data = window_message.of_spans(window, windows.spans(reader, window), last, reader.settled_ns)
    else:
        data = window_message.of_cells(windows.cells(reader, window), last, reader.settled_ns)
    return HttpResponse(data, content_type="application/octet-stream")


def asked(reader: StoreReader, given: Any) -> Window:
    """The window of a query; what it leaves out is the whole run, every lane, 1,400 pixels. Raises NotUnderstood."""
    from_ns = number(given, "from", reader.manifest.start_ns, -LATEST_NS, LATEST_NS)
    to_ns = number(given, "to", max(reader.manifest.end_ns, from_ns + 1), -LATEST_NS, LATEST_NS)
    pixels = number(given, "pixels", 1400, 1, MOST_PIXELS)
    if to_ns <= from_ns:
        raise NotUnderstood("to", str(to_ns), f"something after from={from_ns} would do")
    lanes = given.get("lanes")
    if lanes is None:
        return windows.window_of(reader, from_ns, to_ns, pixels)
    found = _LANES.match(lanes)
    if not found or int(found[2]) < int(found[1]):
        raise NotUnderstood("lanes", lanes, "the first and the last lane would do, as in 0-63; a rank has four")
    return windows.window_of(reader, from_ns, to_ns, pixels, int(found[1]), int(found[2]) + 1)
