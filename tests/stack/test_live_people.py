"""People on one run at once: who looks, who shows the others around, and that comments and notices are told."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from asgiref.sync import sync_to_async

from dashboard.accounts import teams
from dashboard.asgi import application
from dashboard.comments import services as comments
from dashboard.runs import services
from dashboard.runs.door import group_of, list_groups_of, people_group
from dashboard.runs.models import State
from tests.stack.live_scene import Page, until_heard
from tests.stack.stack import at_once_seconds
from tests.stack.test_live_socket import cookie, people, valkey, watching  # noqa: F401 (fixtures)
from trainer.presets import preset

pytestmark = [pytest.mark.stack, pytest.mark.timed, pytest.mark.django_db(transaction=True)]


class NewsPage(Page):
    """A page's socket for news."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.told = []

    async def hear(self, wanted, seconds=5):
        """Until a message of that type comes."""
        while True:
            message = await self.socket.receive_output(timeout=seconds)
            if message["type"] == "websocket.close":
                self.close_code = message["code"]
                return None
            self.told.append(json.loads(message["text"]))
            if self.told[-1]["type"] == wanted:
                return self.told[-1]


@asynccontextmanager
async def news_of(people, who):  # noqa: F811
    page = NewsPage(application, "/ws/news/", cookie(await sync_to_async(people.client)(who)))
    await page.open()
    try:
        yield page
    finally:
        await page.close()


def heard_by(user):
    return [people_group(user.pk), *list_groups_of(user)]


def lead(view):
    return json.dumps({"type": "lead", "view": view})


async def test_everybody_sees_who_looks_and_a_guest_sees_how_many(people):  # noqa: F811
    async with watching(people, "member") as member, watching(people, "link_holder") as guest:
        async with watching(people, "viewer") as viewer:
            for page in (member, viewer, guest):
                await page.open()
            await member.until(lambda: member.people.get("count") == 3)
            assert [one["name"] for one in member.people["people"]] == ["member", "viewer", "guest"]
            assert member.people["me"] == member.people["people"][0]["key"]
            await guest.until(lambda: guest.people.get("count") == 3)
            assert guest.people["people"] == []
        await member.until(lambda: member.people["count"] == 2)


async def test_one_shows_the_others_around_until_she_leaves(people):  # noqa: F811
    async with watching(people, "editor") as editor, watching(people, "link_holder") as guest:
        async with watching(people, "member") as member:
            for page in (member, editor, guest):
                await page.open()
                await page.until(lambda page=page: page.states)
            await member.send(text=lead("t=1,2&span=0,0,5"))
            await editor.until(lambda: editor.lead)
            assert (editor.lead["name"], editor.lead["view"]) == ("member", "t=1,2&span=0,0,5")
            await guest.until(lambda: guest.lead)
            assert (guest.lead["name"], guest.lead["key"], guest.lead["view"]) == ("", "", "t=1,2&span=0,0,5")
            await member.send(text=lead("t=3,4"))
            await editor.until(lambda: editor.lead["view"] == "t=3,4")
        await editor.until(lambda: editor.lead is None)


async def test_a_guest_leads_nobody(people):  # noqa: F811
    async with watching(people, "link_holder") as guest:
        await guest.open()
        await guest.until(lambda: guest.states)
        await guest.send(text=lead("t=1,2"))
        await guest.until(lambda: guest.close_code)
        assert guest.close_code == 4400


async def test_a_comment_is_told_at_once(people):  # noqa: F811
    async with watching(people, "member") as member:
        await member.open()
        await member.until(lambda: member.states)
        await until_heard(group_of(people.run.pk))
        began = asyncio.get_running_loop().time()
        await sync_to_async(comments.write)(people.run, people.run.owner, "look")
        await member.until(lambda: member.states[-1]["comments_revision"] == 1)
        assert asyncio.get_running_loop().time() - began < at_once_seconds()


async def test_the_list_and_the_bell_hear_of_news_and_strangers_of_none(people):  # noqa: F811
    async with news_of(people, "viewer") as viewer, news_of(people, "outsider") as outsider, news_of(people, "nobody") as nobody:
        assert (await viewer.hear("notices"))["unread"] == 0
        assert (await outsider.hear("notices"))["unread"] == 0
        assert await nobody.hear("notices") is None and nobody.close_code == 4404
        for who in ("viewer", "outsider"):
            user = await sync_to_async(people.user)(who)
            await until_heard(*await sync_to_async(heard_by)(user))
        await sync_to_async(services.launch)(preset("ddp-digits").spec, people.run.owner, team=people.team)
        await viewer.hear("runs")
        await sync_to_async(comments.write)(people.run, people.run.owner, "@viewer look")
        told = await viewer.hear("notices")
        assert (told["unread"], told["newest"]["kind"]) == (1, "mentioned")
        assert [message["type"] for message in outsider.told] == ["notices"]


async def test_who_joins_a_team_hears_of_its_runs_without_a_reload(people):  # noqa: F811
    async with news_of(people, "outsider") as outsider:
        await outsider.hear("notices")
        user = await sync_to_async(people.user)("outsider")
        await until_heard(*await sync_to_async(heard_by)(user))
        invitation, _ = await sync_to_async(teams.invite)(people.team, people.run.owner, teams.Role.VIEWER, 1, 1)
        await sync_to_async(teams.accept)(invitation, user)
        await until_heard(*await sync_to_async(heard_by)(user))  # the team's runs among them
        await sync_to_async(services.move)(people.run.pk, State.STARTING)
        await outsider.hear("runs")
