"""What unit tests share: no Redis, a home folder of their own, and the people who come to a page."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.core.cache import cache

from dashboard.runs import fleet
from tests.people import People, gather
from trainer.presets import PRESETS


@pytest.fixture(autouse=True)
def nobody_has_called_before():
    """Calls are counted by person in the cache, and each test has the same persons."""
    cache.clear()


@pytest.fixture
def home(settings, tmp_path):
    """LOCKSTEP_HOME, empty."""
    settings.CONF = replace(settings.CONF, home=tmp_path)
    return tmp_path


@pytest.fixture
def people(db, home) -> People:
    return gather(PRESETS["pipeline-1f1b"].spec)


@pytest.fixture
def worker():
    """A worker as its heartbeat shows it, for tests to change."""
    return fleet.Worker(
        name="w1", host="box", pid=1, devices=["cpu"], cores=2, gpus=0, ranks=16, ranks_free=12,
        realtime=True, host_ready=True, runs=[], beat_unix=0.0,
    )


@pytest.fixture
def workers(monkeypatch, worker):
    """The fleet: one worker. Append and remove as you like."""
    here = [worker]
    monkeypatch.setattr(fleet, "workers", lambda client=None: list(here))
    return here
