"""Who sent how much to whom, and how often and how long each rank did what."""

from __future__ import annotations

import numpy as np

from trainer.trace.analysis.spans import Array, Spans
from trainer.trace.kinds import Kind

KINDS = 32


def sent_bytes(spans: Spans, ranks: int) -> Array:
    """Bytes by [sender, receiver], from the sends that ranks recorded. A collective that its backend carries out alone
    records no sends: its bytes are in the totals of its kind."""
    sends = (spans["kind"] == Kind.SEND) & (spans["peer"] >= 0) & (spans["peer"] < ranks) & (spans["bytes"] > 0)
    place = spans["rank"][sends].astype(np.int64) * ranks + spans["peer"][sends]
    return np.bincount(place, spans["bytes"][sends], ranks * ranks).reshape(ranks, ranks)


def totals(spans: Spans, ranks: int) -> tuple[Array, Array, Array]:
    """(spans, nanoseconds, bytes) by [rank, kind]."""
    place = spans["rank"].astype(np.int64) * KINDS + spans["kind"]
    shape, size = (ranks, KINDS), ranks * KINDS
    count = np.bincount(place, minlength=size).reshape(shape)
    lasted = np.bincount(place, spans["duration_ns"], size).reshape(shape)
    return count, lasted, np.bincount(place, np.maximum(spans["bytes"], 0), size).reshape(shape)
