"""How a page begins with what is sealed of a run: all of it at once, or, where that is too much to hold, by windows."""

from __future__ import annotations

import logging
from typing import TypedDict

import numpy as np

from dashboard.live.cursor import AfterSealed
from dashboard.runs.kept import StorageAway
from dashboard.runs.stored import store_of
from trainer.trace.manifest import ForeignStore
from trainer.trace.store import StoreReader

log = logging.getLogger(__name__)

IN_PAGE_SPANS = 2_000_000  # about 130 MB in a browser
TAIL_SPANS = 500_000  # of a run that goes on, the latest come through the socket: what is settled lies before them


class Sealed(TypedDict):
    """What was sealed when the page was made; times in ns on the run's clock."""

    after: str  # the cursor to begin with
    spans_before: int  # that the socket will not send
    start_ns: int
    end_ns: int
    held_from_ns: int | None  # what touches the time after it comes through the socket; None of a run that goes on no more


class Opening(TypedDict):
    most_spans: int  # that the page holds
    sealed: Sealed | None  # None where all of it fits


def opening_of(run_id: str) -> Opening:
    try:
        return opening(store_of(run_id), IN_PAGE_SPANS, TAIL_SPANS)
    except (ForeignStore, StorageAway) as trouble:  # the page tells of the run all the same
        log.error("what run %s recorded is not shown: %s", run_id, trouble)
        return {"most_spans": IN_PAGE_SPANS, "sealed": None}


def opening(reader: StoreReader, most_spans: int, tail_spans: int) -> Opening:
    head = reader.manifest
    if head.spans <= most_spans:
        return {"most_spans": most_spans, "sealed": None}
    _, end_ns, spans, _ = reader.extents
    before = len(spans)
    if not head.complete:
        after = np.cumsum(spans[::-1])  # of the last segment, of the last two, and so on
        before -= min(before, int(np.searchsorted(after, tail_spans)) + 1)
    return {"most_spans": most_spans, "sealed": {
        "after": str(AfterSealed(before)),
        "spans_before": int(spans[:before].sum()),
        "start_ns": head.start_ns,
        "end_ns": head.end_ns,
        "held_from_ns": None if head.complete else int(end_ns[:before].max(initial=head.start_ns)),
    }}
