"""Spans of one lane from several threads, without overlaps."""

from __future__ import annotations

import threading
from typing import Any

from trainer.trace.kinds import LANE_OF, Kind, Lane
from trainer.trace.row import Add


class InOrder:
    """Hands rows on to `add`; one of `lane` starts no earlier than the one that was handed on before it ended."""

    def __init__(self, add: Add, lane: Lane):
        self._add, self._lane = add, lane
        self._lock = threading.Lock()
        self._last_end_ns = 0

    def __call__(self, kind: int, start_ns: int, end_ns: int, *rest: Any) -> None:
        if LANE_OF[Kind(kind)] is not self._lane:
            self._add(kind, start_ns, end_ns, *rest)
            return
        with self._lock:
            start_ns = max(start_ns, self._last_end_ns)
            self._last_end_ns = end_ns = max(start_ns, end_ns)
            self._add(kind, start_ns, end_ns, *rest)
