"""From a real stream and a real store to pages: everything arrives, once, whatever happens on the way."""

import asyncio
import os
import signal
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import redis
from asgiref.sync import sync_to_async
from django.utils import timezone

from dashboard.asgi import application
from dashboard.live import reader as reader_module
from dashboard.live import room as room_module
from dashboard.runs import services
from dashboard.runs.models import Run, State
from tests.people import gather
from tests.stack.live_scene import Page, Rank, Recorder
from tests.valkey import port_of, start_valkey
from trainer.folder import run_folder, store_folder
from trainer.presets import preset
from trainer.trace.stream import frames_key

pytestmark = [pytest.mark.stack, pytest.mark.timed, pytest.mark.django_db(transaction=True)]


class Valkey:
    def __init__(self, folder):
        self.folder = folder
        self.url, self.process = start_valkey(folder)

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def start(self):
        _, self.process = start_valkey(self.folder, port_of(self.url))


@pytest.fixture
def valkey(tmp_path):
    server = Valkey(tmp_path / "valkey")
    yield server
    server.kill()


@pytest.fixture
def scene(settings, tmp_path, valkey):
    settings.CONF = replace(settings.CONF, redis_url=valkey.url, home=tmp_path)
    people = gather(preset("pipeline-1f1b").spec)
    run = people.run
    services.move(run.id, State.STARTING)
    services.move(run.id, State.RUNNING)
    people.ranks = [Rank(valkey.url, run.id, rank) for rank in range(2)]
    people.recorder = Recorder(valkey.url, run.id, store_folder(run_folder(tmp_path, run.id)))
    people.valkey = valkey
    return people


def written(scene):
    return set().union(*(rank.written for rank in scene.ranks))


def flush(scene, frames=1):
    for rank in scene.ranks:
        rank.flush(frames)


def end(scene):
    """What the supervisor and the recorder do at a run's end."""
    scene.recorder.say(type="end")
    scene.recorder.seal(complete=True)
    services.move(scene.run.id, State.FINISHED)
    services.note(scene.run.id, sealed_at=timezone.now())


def delete_stream(scene):
    redis.Redis.from_url(scene.valkey.url).delete(frames_key(scene.run.id))


@asynccontextmanager
async def watching(scene, cursor=None):
    page = Page(application, f"/ws/s/{scene.token}/")
    page.cursor = cursor
    await page.open()
    try:
        yield page
    finally:
        await page.close()


def assert_all_once(page, scene):
    assert len(page.spans) == len(set(page.spans)), "a span came twice"
    assert set(page.spans) == written(scene)


async def test_spans_come_live_to_every_viewer_and_the_end_is_told(scene):
    async with watching(scene) as first, watching(scene) as second:
        for _ in range(5):
            flush(scene, 3)
            for page in (first, second):
                await page.pull_until(written(scene))
        await sync_to_async(end)(scene)
        for page in (first, second):
            await page.pull_to_the_end()
            assert_all_once(page, scene)


async def test_a_late_viewer_gets_the_sealed_part_then_the_trimmed_stream_then_what_comes(scene):
    flush(scene, 10)
    scene.recorder.say(type="steps", rows=[{"step": 0, "loss": 2.5}])
    scene.recorder.seal()
    flush(scene, 10)
    scene.recorder.seal()
    flush(scene, 4)
    async with watching(scene) as page:
        await page.pull_until(written(scene))
        flush(scene, 4)
        await page.pull_until(written(scene))
        assert_all_once(page, scene)
        assert {"type": "steps", "rows": [{"step": 0, "loss": 2.5}]} in page.events


async def test_a_page_that_slept_while_its_place_was_sealed_goes_on_without_gap_or_double(scene):
    async with watching(scene) as page:
        flush(scene, 3)
        await page.pull_until(written(scene))
    slept, cursor = page, page.cursor
    for _ in range(3):
        flush(scene, 5)
        scene.recorder.seal()
    flush(scene, 2)
    async with watching(scene) as page:
        page.cursor, page.spans, page._sequence = cursor, slept.spans, slept._sequence
        await page.pull_until(written(scene))
        assert_all_once(page, scene)


async def test_sealing_and_trimming_under_slow_viewers(scene, monkeypatch):
    monkeypatch.setattr(reader_module, "RING_BYTES", 4000)
    monkeypatch.setattr(reader_module, "BATCH_BYTES", 2000)
    async with watching(scene) as slow, watching(scene) as quick:
        for round in range(12):
            flush(scene, 4)
            if round % 2:
                scene.recorder.seal()
            if round % 4 == 0:
                await slow.pull()
            await quick.pull_until(written(scene))
        await sync_to_async(end)(scene)
        delete_stream(scene)
        for page in (slow, quick):
            await page.pull_to_the_end()
            assert_all_once(page, scene)


async def test_a_sealed_run_is_read_without_redis(scene):
    flush(scene, 6)
    scene.recorder.say(type="steps", rows=[{"step": 0, "loss": 2.5}, {"step": 1, "loss": 2.25}])
    await sync_to_async(end)(scene)
    scene.valkey.kill()
    async with watching(scene) as page:
        await page.pull_to_the_end()
        assert_all_once(page, scene)
        assert page.redis_away is None
        assert page.events == [{"type": "steps", "rows": [{"step": 0, "loss": 2.5}, {"step": 1, "loss": 2.25}]}]
    scene.valkey.start()


async def test_a_run_stopped_in_the_queue_is_complete_and_empty(scene):
    await sync_to_async(Run.objects.filter(pk=scene.run.id).update)(state=State.STOPPED, started_at=None)
    async with watching(scene) as page:
        await page.pull()
        assert page.complete and not page.spans


async def test_redis_goes_and_comes_back_and_nothing_is_missed(scene, monkeypatch):
    monkeypatch.setattr(room_module, "ACTIVE_SECONDS", 0.5)
    async with watching(scene) as page:
        flush(scene, 3)
        await page.pull_until(written(scene))
        await page.send(text=f'{{"type": "pull", "after": "{page.cursor}"}}')
        scene.valkey.kill()
        await page.until(lambda: page.redis_away is True)
        await sync_to_async(Run.objects.filter(pk=scene.run.id).update)(steps_done=5)
        await page.until(lambda: page.states[-1]["steps_done"] == 5)  # the state needs no Redis
        scene.valkey.start()
        await page.until(lambda: page.redis_away is False, seconds=10)
        flush(scene, 3)
        await page.until_batch()
        await page.pull_until(written(scene))
        assert_all_once(page, scene)


async def test_a_flushed_redis_stalls_no_waiting_viewer(scene):
    async with watching(scene) as page:
        flush(scene, 3)
        await page.pull_until(written(scene))
        await page.send(text=f'{{"type": "pull", "after": "{page.cursor}"}}')
        delete_stream(scene)
        client = redis.Redis.from_url(scene.valkey.url)
        client.xadd(frames_key(scene.run.id), {b"e": b'{"type": "note"}'}, id="5-1")  # the clock was set back
        await page.until_batch()
        assert page.events[-1] == {"type": "note"}


async def test_many_viewers_share_one_reader(scene):
    pages = [Page(application, f"/ws/s/{scene.token}/") for _ in range(20)]
    for page in pages:
        await page.open()
    flush(scene, 5)
    await asyncio.gather(*(page.pull_until(written(scene)) for page in pages))
    assert len(room_module._rooms) == 1
    blocked = [client for client in redis.Redis.from_url(scene.valkey.url).client_list() if client["cmd"].startswith("xread")]
    assert len(blocked) <= 1
    for page in pages:
        assert_all_once(page, scene)
        await page.close()
