"""A live chart shows the steps that only the stream holds yet, and keeps them once they are sealed."""

from dataclasses import replace

import pytest

from dashboard.charts.memory_rows import recent
from dashboard.charts.rows import step_rows
from dashboard.runs.models import Run
from tests.stack.live_scene import Rank, Recorder
from tests.unit.frames import frame_of
from tests.valkey import start_valkey
from trainer.folder import run_folder, store_folder
from trainer.presets import preset
from trainer.trace.frame import encode
from trainer.trace.stream import FRAME

pytestmark = [pytest.mark.stack, pytest.mark.timed, pytest.mark.django_db]


@pytest.fixture
def run(settings, tmp_path):
    url, process = start_valkey(tmp_path / "valkey")
    settings.CONF = replace(settings.CONF, redis_url=url, home=tmp_path)
    run = Run.objects.create(name="a run", spec_json=preset("pipeline-1f1b").spec.model_dump(), device="cpu")
    run.rank = Rank(url, run.id)
    run.recorder = Recorder(url, run.id, store_folder(run_folder(tmp_path, run.id)))
    run.valkey = process
    yield run
    process.kill()
    process.wait()


def losses(run):
    return {row["step"]: row["loss"] for row in step_rows(run)}


def say(run, *steps, loss=2.0):
    run.recorder.say(type="steps", rows=[{"step": step, "loss": loss, "bubble_share": 0.25} for step in steps])


def test_steps_come_from_disk_and_from_the_stream_after_it(run):
    say(run, 0, 1)
    run.rank.flush(3)
    run.recorder.seal()
    assert losses(run) == {0: 2.0, 1: 2.0}
    say(run, 2)
    run.rank.flush(300)
    say(run, 3)
    assert losses(run) == {0: 2.0, 1: 2.0, 2: 2.0, 3: 2.0}


def test_what_was_read_from_the_stream_stays_when_it_is_trimmed(run):
    say(run, 0)
    assert losses(run) == {0: 2.0}
    say(run, 1)
    run.recorder.seal()
    assert losses(run) == {0: 2.0, 1: 2.0}


def test_a_step_that_is_figured_again_counts_as_it_came_last(run):
    say(run, 0, loss=3.0)
    assert losses(run) == {0: 3.0}
    say(run, 0, loss=1.0)
    assert losses(run) == {0: 1.0}
    run.recorder.seal(complete=True)
    assert losses(run) == {0: 1.0}


def test_without_redis_the_sealed_steps_are_shown(run):
    say(run, 0)
    run.rank.flush()
    run.recorder.seal()
    say(run, 1)
    run.valkey.kill()
    run.valkey.wait()
    assert losses(run) == {0: 2.0}


def test_sealing_an_older_figure_does_not_undo_a_newer_one(run):
    say(run, 0, loss=3.0)
    say(run, 0, loss=1.0)
    assert losses(run) == {0: 1.0}
    store, [(first_id, _), _] = run.recorder.store, run.recorder.redis.xrange(run.recorder.key)
    store.add_steps([{"step": 0, "loss": 3.0}])
    store.passed(first_id.decode())
    store.seal()
    assert losses(run) == {0: 1.0}


def test_a_ranks_memory_comes_from_the_stream_and_then_from_the_store(run):
    for sequence in range(1, 6):
        for rank in (0, 1):
            counter = ("memory/activations", 100.0 * sequence + rank, sequence, sequence * 1000)
            frame = frame_of(rank, sequence, [], counters=[counter])
            run.recorder.redis.xadd(run.recorder.key, {FRAME: encode(frame)})
    live = recent(run, 1)
    assert [(row.step, row.bytes) for row in live] == [(2, 201), (3, 301), (4, 401), (5, 501)], "as it was when three steps began"
    assert live[0].time_ns == live[1].time_ns
    run.recorder.seal(complete=True)
    run.valkey.kill()
    run.valkey.wait()
    assert recent(run, 1) == live
