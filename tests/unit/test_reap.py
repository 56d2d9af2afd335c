"""The reaper's judgement, with a Redis that is a dictionary and a clock that is a number."""

import json
from dataclasses import asdict

import pytest
import redis

from dashboard.runs import door, fleet, services
from dashboard.runs.models import Run, State
from trainer.presets import PRESETS
from trainer.trace.stream import RunBeat, beat_key
from workers import reap
from workers.reap import Reaper, idle_devices, reason_lost

SPEC = PRESETS["pipeline-1f1b"].spec


class Memory:
    """As much of Redis as the reaper uses."""

    def __init__(self):
        self.values, self.queued, self.is_away = {}, 0, False

    def ping(self):
        if self.is_away:
            raise redis.ConnectionError("away")

    def mget(self, keys):
        return [self.values.get(key) for key in keys]

    def llen(self, _name):
        return self.queued

    def scan_iter(self, match, count):
        return []


@pytest.fixture
def memory(monkeypatch):
    memory = Memory()
    memory.closed, memory.workers, memory.put = [], [], []
    monkeypatch.setattr(reap, "close_stream", lambda client, url, run_id, folder, ranks: memory.closed.append(run_id))
    monkeypatch.setattr(fleet, "workers", lambda client=None: memory.workers)
    monkeypatch.setattr(door, "put_in_queue", lambda run_id, device: memory.put.append(run_id))
    return memory


def a_worker(name="w1", ranks_free=64, devices=("cpu",)):
    return fleet.Worker(name, "vm", 7, list(devices), 2, 0, 64, ranks_free, True, True, [], 0.0)


def an_active_run(memory, count=1):
    run = Run.objects.create(name="r", device="cpu", spec_json=SPEC.model_dump())
    assert services.claim(run.id, "w1")
    beat(memory, run, count)
    return run


def beat(memory, run, count):
    memory.values[beat_key(run.id)] = json.dumps(asdict(RunBeat("w1", "vm", 7, 8, count)))


def state_of(run):
    return Run.objects.get(pk=run.pk).state


@pytest.mark.django_db
def test_a_run_that_beats_is_left_alone(memory):
    run, reaper = an_active_run(memory), Reaper(memory)
    for second in range(20):
        beat(memory, run, second)
        reaper.look(float(second))
    assert state_of(run) == State.STARTING and not memory.closed


@pytest.mark.django_db
def test_silence_makes_a_run_lost_and_closes_its_stream_once(memory):
    run, reaper = an_active_run(memory), Reaper(memory)
    for second in range(6):
        reaper.look(float(second))
    assert state_of(run) == State.STARTING
    for second in range(6, 12):
        reaper.look(float(second))
    assert state_of(run) == State.LOST and memory.closed == [run.id]
    assert "has not been heard for 6 s: the whole worker is gone" in Run.objects.get(pk=run.pk).reason


@pytest.mark.django_db
def test_silence_while_redis_was_away_counts_for_nothing(memory):
    run, reaper = an_active_run(memory), Reaper(memory)
    reaper.look(0.0)
    memory.is_away = True
    with pytest.raises(redis.RedisError):
        reaper.look(5.0)
    reaper.forget()
    memory.is_away = False
    for second in range(20, 26):
        reaper.look(float(second))
    assert state_of(run) == State.STARTING
    reaper.look(26.0)
    assert state_of(run) == State.LOST


@pytest.mark.django_db
def test_an_untaken_run_is_put_back_only_beside_an_idle_worker_and_an_empty_queue(memory):
    run, reaper = Run.objects.create(name="r", device="cpu", spec_json=SPEC.model_dump()), Reaper(memory)
    memory.workers = [a_worker(ranks_free=0), a_worker("gpu", devices=("cuda",))]
    reaper.look(0.0)
    reaper.look(10.0)
    assert memory.put == []
    memory.workers = [a_worker()]
    reaper.look(11.0)
    reaper.look(15.0)
    assert memory.put == []
    memory.queued = 1
    reaper.look(17.0)
    assert memory.put == []
    memory.queued = 0
    reaper.look(23.0)
    reaper.look(24.0)
    assert memory.put == [run.id]


def test_idle_devices_are_those_of_workers_with_room():
    assert idle_devices([a_worker(ranks_free=0), a_worker(devices=("cpu", "cuda"))]) == {"cpu", "cuda"}


def test_the_reason_says_who_fell_silent_and_how_much_of_it():
    one = RunBeat("w1", "vm", 7, 8, 3)
    whole = "Worker w1 on vm (process 7) has not been heard for 6 s: the whole worker is gone."
    assert reason_lost("w1", one, 6.2, False) == whole
    assert "(8 of worker w1 on vm)" in reason_lost("w1", one, 6.2, True)
    assert "nothing has been heard of it" in reason_lost("w1", None, 6.2, True)
    assert reason_lost("w1", None, 6.2, False).startswith("Worker w1 has not been heard")
