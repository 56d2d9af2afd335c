"""What Prometheus is told: this server's own counts, and what database and Redis say of the rest, in a query each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import redis
from django.conf import settings
from django.db import DatabaseError
from django.db.models import Count
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dashboard.live.measured import SENT_BYTES, ViewerCount
from dashboard.operating.durations import REQUEST_SECONDS
from dashboard.runs import fleet
from dashboard.runs.models import Run, State
from trainer.trace.stream import RECORDER

RECORDED = {
    "frames_sealed": "Frames of ranks that were sealed",
    "frames_lost": "Frames of ranks that never came, or could not be read",
    "spans_sealed": "Spans that were sealed",
    "spans_lost": "Spans that ranks recorded and that found no way to the store",
}


class Runs(Collector):
    def collect(self) -> Iterator[Metric]:
        is_there = GaugeMetricFamily("lockstep_database_up", "Whether the database answered")
        runs = GaugeMetricFamily("lockstep_runs", "Runs that are not deleted, by state", labels=["state"])
        queue = GaugeMetricFamily("lockstep_queue_length", "Runs that wait for a worker, by device", labels=["device"])
        try:
            counted = list(Run.objects.filter(deleted_at=None).order_by().values_list("state", "device").annotate(Count("pk")))
        except DatabaseError:
            is_there.add_metric([], 0)
            yield is_there
            return
        is_there.add_metric([], 1)
        by_state: Counter[str] = Counter()
        waiting: Counter[str] = Counter({"cpu": 0})
        for state, device, count in counted:
            by_state[state] += count
            waiting[device] += count if state == State.QUEUED else 0
        for state in State.values:
            runs.add_metric([state], by_state[state])
        for device, count in sorted(waiting.items()):
            queue.add_metric([device], count)
        yield from (is_there, runs, queue)


class Others(Collector):
    """The recorder and the workers, by what they say of themselves in Redis."""

    def collect(self) -> Iterator[Metric]:
        is_there = GaugeMetricFamily("lockstep_redis_up", "Whether Redis answered")
        try:
            client: Any = redis.Redis.from_url(settings.CONF.redis_url, socket_timeout=2, socket_connect_timeout=2)
            beat = json.loads(client.get(RECORDER) or "null")
            workers = fleet.workers(client)
        except (redis.RedisError, ValueError, fleet.FleetUnknown):
            is_there.add_metric([], 0)
            yield is_there
            return
        is_there.add_metric([], 1)
        yield is_there
        yield from _of_recorder(beat)
        yield GaugeMetricFamily("lockstep_workers", "Workers that were heard in the last seconds", len(workers))
        slots, free = sum(one.ranks for one in workers), sum(one.ranks_free for one in workers)
        yield GaugeMetricFamily("lockstep_rank_slots", "Ranks that all workers can run at once", slots)
        yield GaugeMetricFamily("lockstep_rank_slots_free", "Those of them that are free", free)


def _of_recorder(beat: dict[str, Any] | None) -> Iterator[Metric]:
    yield GaugeMetricFamily("lockstep_recorder_up", "Whether the recorder was heard in the last seconds", int(beat is not None))
    if beat is None:
        return
    yield GaugeMetricFamily(
        "lockstep_recorder_lag_seconds", "Age of the newest entry that the recorder read last, when it read it", beat["lag"]
    )
    for name, words in RECORDED.items():
        yield CounterMetricFamily(f"lockstep_{name}", f"{words}, since the recorder began", beat["sealed"][name])


REGISTRY = CollectorRegistry()
for collector in (Runs(), Others(), ViewerCount(), SENT_BYTES, REQUEST_SECONDS):
    REGISTRY.register(collector)
ProcessCollector(registry=REGISTRY)
