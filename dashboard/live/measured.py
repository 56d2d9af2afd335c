"""What viewers cost this process, counted for `/metrics`."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Counter
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dashboard.live.room import viewers_here

SENT_BYTES = Counter("lockstep_viewer_bytes", "Bytes that live pages were sent over their websockets", registry=None)


class ViewerCount(Collector):
    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("lockstep_viewers", "Pages that watch a run through this process", viewers_here())
