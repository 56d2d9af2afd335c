"""Search in all that is sealed of a run: how many matches a stretch of it holds, and where those of a segment are.

`?q=QUERY&after=N` answers with JSON: what the segments after number N hold, as many as one answer is to read, and through
which it went (trainer/trace/search.py). `?q=QUERY&segment=N` answers with that segment's matches in the order of time: u32
how many, 4 bytes of 0, their starts in ns as f64, their lanes (rank × 4 + lane) as u32, all little-endian.
"""

from __future__ import annotations

import logging
import struct
from dataclasses import asdict

from django.http import HttpRequest, HttpResponse, JsonResponse

from dashboard.live.asked import NotUnderstood, by_id_and_by_link, let_keep, number
from dashboard.runs.models import Run
from dashboard.runs.stored import store_of
from trainer.trace.search import matches, search
from trainer.trace.segments import BrokenSegment
from trainer.trace.span_query import BadQuery, SpanQuery, parse
from trainer.trace.store import StoreReader

log = logging.getLogger(__name__)

_MOST_SEGMENTS = 2**31


def _answer(request: HttpRequest, run: Run) -> HttpResponse:
    reader = store_of(run.pk)
    text = request.GET.get("q", "")
    try:
        query = parse(text)
        if "segment" in request.GET:
            return let_keep(_of_segment(reader, query, number(request.GET, "segment", 0, 1, _MOST_SEGMENTS)), reader)
        after = number(request.GET, "after", 0, 0, _MOST_SEGMENTS)
    except BadQuery as bad:
        return _refused(NotUnderstood("q", text, str(bad)))
    except NotUnderstood as bad:
        return _refused(bad)
    found = search(reader, query, after)
    response = JsonResponse(asdict(found) | {"last": len(reader.segments), "complete": reader.manifest.complete})
    return response if found.unread else let_keep(response, reader)


run_search, shared_search = by_id_and_by_link(_answer)


def _of_segment(reader: StoreReader, query: SpanQuery, segment: int) -> HttpResponse:
    try:
        starts, lanes = matches(reader, query, segment)
    except IndexError:
        raise NotUnderstood("segment", str(segment), f"one of the {len(reader.segments)} that are sealed would do") from None
    except BrokenSegment as broken:
        log.error("a segment is not searched: %s", broken)
        raise NotUnderstood("segment", str(segment), "it cannot be read; another one would do") from None
    data = struct.pack("<II", len(starts), 0) + starts.tobytes() + lanes.tobytes()
    return HttpResponse(data, content_type="application/octet-stream")


def _refused(bad: NotUnderstood) -> HttpResponse:
    return JsonResponse({"error": bad.answer["message"], "errors": [bad.answer]}, status=400)
