"""How long the server takes for the list of runs, and how many queries, with 10,000 runs and with 100.

In a database of its own, whose rows are as finished runs leave them: figures, a picture, tags.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.runs import fleet
from dashboard.runs.models import Run, RunTag, State
from trainer.presets import PRESETS

HELP = "the server's time for the list at 10,000 runs beside 100"

MANY, FEW = 10_000, 100
ROUNDS = 15
ADDRESSES = {
    "server_ms": "/", "search_ms": "/?q=state:finished+bubble>25%25+tag:odd", "words_ms": "/?q=pipeline+slow",
    "sorted_ms": "/?sort=-bubble", "last_page_ms": "/?page=100000", "rows_ms": "/rows/",
}


def run(options: dict[str, Any]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    fleet.workers, kept = lambda client=None: [], fleet.workers  # Redis is not what is measured
    try:
        with own_database():
            settings.ALLOWED_HOSTS = [*settings.ALLOWED_HOSTS, "testserver"]
            owner = get_user_model().objects.create_superuser("bench")
            client = Client()
            client.force_login(owner)
            for count, suffix in ((FEW, f"_at_{FEW}"), (MANY, "")):
                fill([owner], [None], count)
                for name, address in ADDRESSES.items():
                    figures[name + suffix] = _server_ms(client, address)
                with CaptureQueriesContext(connection) as queries:
                    client.get("/")
                figures["queries" + suffix] = len(queries)
    finally:
        fleet.workers = kept
    return figures | {"runs": MANY}


@contextmanager
def own_database() -> Iterator[None]:
    with TemporaryDirectory(prefix="lockstep-bench-") as folder:
        if connection.vendor == "sqlite":  # in a file, as the product has it, not in memory
            connection.settings_dict["TEST"]["NAME"] = str(Path(folder) / "bench.sqlite3")
        old = connection.settings_dict["NAME"]
        connection.creation.create_test_db(verbosity=0, autoclobber=True)
        try:
            yield
        finally:
            connection.creation.destroy_test_db(old, verbosity=0)


def _server_ms(client: Client, address: str) -> float:
    """From request to answer, in this process: middleware, session, queries, template."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        answer = client.get(address)
        times.append(time.perf_counter() - began)
        assert answer.status_code == 200, answer.status_code
    return round(median(times) * 1000, 1)


def fill(owners: list[Any], teams: list[Any], count: int) -> None:
    """As many runs of all presets, of these owners and teams in turn, the same each time."""
    dice = random.Random(count)
    Run.objects.all().delete()
    specs = [preset.spec.model_dump() for preset in PRESETS.values()]
    picture = bytes([1, 4, 96]) + bytes(value for at in range(4 * 96) for value in (1 + at // 5 % 2, 255 * (at % 12 > 2)))
    now = timezone.now()
    runs = [
        Run(owner=owners[at % len(owners)], team=teams[at // len(owners) % len(teams)], name=f"{spec['name']} {at}",
            spec_json=spec, device="cpu", picture=picture, steps_done=spec["steps"],
            state=dice.choice([State.FINISHED, State.FINISHED, State.FAILED, State.STOPPED]), sealed_at=now,
            note="slow" if at % 50 == 0 else "",
            figures={"bubble_share": dice.random(), "bubble_share_theory": 0.27, "loss_last": dice.uniform(1, 5),
                     "step_seconds": dice.random()})
        for at, spec in ((at, dice.choice(specs)) for at in range(count))
    ]
    Run.objects.bulk_create(runs, batch_size=500)
    for at, run in enumerate(runs):
        run.created_at = now - timedelta(minutes=at)
    Run.objects.bulk_update(runs, ["created_at"], batch_size=200)
    tags = [RunTag(run=run, name=name) for at, run in enumerate(runs) for name in ("odd" if at % 2 else "even", f"t{at % 40}")]
    RunTag.objects.bulk_create(tags, batch_size=2000)
