"""Who may watch, what they are told, and when they are shown out."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import redis
from asgiref.sync import sync_to_async
from django.contrib.sessions.models import Session

from dashboard.asgi import application
from dashboard.live import room as room_module
from dashboard.runs import door, links, services
from dashboard.runs.door import group_of
from dashboard.runs.models import Run, State
from tests.people import EVERYBODY, THOSE_WHO_SEE, gather
from tests.stack.live_scene import Page, until_heard
from tests.stack.stack import at_once_seconds
from tests.valkey import port_of, start_valkey
from trainer.presets import preset

pytestmark = [pytest.mark.stack, pytest.mark.timed, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def valkey(tmp_path_factory):
    url, process = start_valkey(tmp_path_factory.mktemp("valkey"))
    door._celery.cache_clear()  # it may be that of another file, whose Redis is gone
    yield url
    process.kill()
    process.wait()


@pytest.fixture
def people(settings, tmp_path, valkey):
    settings.CONF = replace(settings.CONF, redis_url=valkey, home=tmp_path)
    return gather(preset("pipeline-1f1b").spec)


def address(people, who):
    return f"/ws/s/{people.token}/" if who == "link_holder" else f"/ws/runs/{people.run.id}/"


def cookie(client):
    return "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())


@asynccontextmanager
async def watching(people, who, path=None, **kwargs):
    client = await sync_to_async(people.client)(who)
    page = Page(application, path or address(people, who), cookie(client), **kwargs)
    page.client = client
    try:
        yield page
    finally:
        await page.close()


@pytest.mark.parametrize("who", EVERYBODY)
async def test_who_may_watch(people, who):
    async with watching(people, who) as page:
        assert await page.open()
        if who in THOSE_WHO_SEE:
            await page.until(lambda: page.states)
            assert page.states[0]["id"] == people.run.id and page.states[0]["ranks"] == 4
        else:
            await page.until(lambda: page.close_code)
            assert page.close_code == 4404 and not page.states


@pytest.mark.parametrize(
    "path", ["/ws/s/wrong/", "/ws/s/" + "a" * 32 + "/", "/ws/s/%00%ff/", "/ws/runs/nosuchrun1/", "/ws/runs/%27/"]
)
async def test_what_is_not_there_looks_like_what_is_not_yours(people, path):
    async with watching(people, "member", path) as page:
        assert await page.open()
        await page.until(lambda: page.close_code)
        assert page.close_code == 4404


async def test_a_page_of_another_site_is_refused(people):
    async with watching(people, "member", origin="https://elsewhere.example") as page:
        assert not await page.open()


async def test_a_link_that_is_taken_back_closes_its_pages_and_no_others(people):
    async with watching(people, "link_holder") as holder, watching(people, "member") as member:
        for page in (holder, member):
            await page.open()
            await page.until(lambda page=page: page.states)
        await sync_to_async(links.take_back)(people.link)
        await holder.until(lambda: holder.close_code)
        assert holder.close_code == 4404
        await sync_to_async(services.note)(people.run.id, steps_done=3)
        await member.until(lambda: member.states[-1]["steps_done"] == 3)
        assert member.close_code is None


async def test_a_link_that_is_taken_back_closes_its_pages_at_once(people):
    async with watching(people, "link_holder") as holder:
        await holder.open()
        await holder.until(lambda: holder.states and holder.people)
        await until_heard(group_of(people.run.pk))
        began = asyncio.get_running_loop().time()
        await sync_to_async(links.take_back)(people.link)
        await holder.until(lambda: holder.close_code)
        assert asyncio.get_running_loop().time() - began < at_once_seconds()


async def test_who_is_taken_out_of_the_team_is_shown_out(people):
    async with watching(people, "viewer") as viewer:
        await viewer.open()
        await viewer.until(lambda: viewer.states)
        await sync_to_async(services.give)(people.run, None)
        await viewer.until(lambda: viewer.close_code)
        assert viewer.close_code == 4404


async def test_who_logs_out_is_shown_out(people):
    async with watching(people, "member") as page:
        await page.open()
        await page.until(lambda: page.states)
        await sync_to_async(Session.objects.all().delete)()
        await sync_to_async(services.note)(people.run.id, steps_done=1)
        await page.until(lambda: page.close_code)
        assert page.close_code == 4404


async def test_every_change_of_the_run_is_told(people):
    async with watching(people, "member") as page:
        await page.open()
        for state in (State.STARTING, State.RUNNING, State.FINISHED):
            await sync_to_async(services.move)(people.run.id, state)
            await page.until(lambda state=state: page.states and page.states[-1]["state"] == state)


async def test_a_lost_tick_is_made_good(people, monkeypatch):
    monkeypatch.setattr(room_module, "ACTIVE_SECONDS", 0.2)
    async with watching(people, "member") as page:
        await page.open()
        await page.until(lambda: page.states)
        await sync_to_async(Run.objects.filter(pk=people.run.id).update)(steps_done=7)  # without a tick
        await page.until(lambda: page.states[-1]["steps_done"] == 7)


async def test_a_run_that_is_deleted_is_gone(people):
    async with watching(people, "member") as page:
        await page.open()
        await page.until(lambda: page.states)
        await sync_to_async(people.run.delete)()
        await page.until(lambda: page.close_code)
        assert page.close_code == 4404


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", 4400), ('{"type": "push"}', 4400), ('{"type": "pull", "after": "x:1"}', 4400),
        ('{"type": "pull"}' + " " * 5000, 4413),
    ],
)
async def test_what_is_no_pull_closes_the_socket(people, text, code):
    async with watching(people, "member") as page:
        await page.open()
        await page.send(text=text)
        await page.until(lambda: page.close_code)
        assert page.close_code == code


async def test_bytes_from_a_browser_close_the_socket(people):
    async with watching(people, "member") as page:
        await page.open()
        await page.send(bytes=b"x")
        await page.until(lambda: page.close_code)
        assert page.close_code == 4400


async def test_a_second_pull_before_the_answer_closes_the_socket(people):
    async with watching(people, "member") as page:
        await page.open()
        for _ in range(2):
            await page.send(text='{"type": "pull", "after": null}')
        await page.until(lambda: page.close_code)
        assert page.close_code == 4429


async def test_the_last_to_leave_closes_the_room(people):
    async with watching(people, "member") as first, watching(people, "owner") as second:
        await first.open()
        await second.open()
        await second.until(lambda: second.states)
        await first.until(lambda: first.states)
        assert len(room_module._rooms[people.run.id].viewers) == 2
    assert people.run.id not in room_module._rooms


async def test_ticks_of_other_processes_come_through_redis_also_after_it_was_away(people, settings, tmp_path, monkeypatch):
    """As between the worker and the server; the state would not be read again by itself for a minute."""
    monkeypatch.setattr(room_module, "ACTIVE_SECONDS", 60)
    url, process = start_valkey(tmp_path / "ticks")
    backend = "channels_redis.pubsub.RedisPubSubChannelLayer"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend, "CONFIG": {"hosts": [url]}}}
    client = redis.Redis.from_url(url)

    def heard():
        return client.pubsub_numsub(*client.pubsub_channels("*__group__*"))

    async with watching(people, "member") as page:
        await page.open()
        await page.until(lambda: page.states)
        while not heard():
            await asyncio.sleep(0.01)
        await sync_to_async(services.note)(people.run.id, steps_done=1)
        await page.until(lambda: page.states[-1]["steps_done"] == 1)
        process.kill()
        process.wait()
        _, process = start_valkey(tmp_path / "ticks", port_of(url))
        while not heard():
            await asyncio.sleep(0.01)
        for steps in (2, 3):  # who ticks first finds its own connection dead
            await sync_to_async(services.note)(people.run.id, steps_done=steps)
        await page.until(lambda: page.states[-1]["steps_done"] == 3)
    process.kill()
    process.wait()
