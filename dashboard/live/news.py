"""The websocket of every page behind the login: how many notices are unread, and that the list of runs changed.

Ticks of the channel layer say that there is something to look at; they may be lost, so it looks by itself as well.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer

from dashboard.live.messages import CLOSE_GONE, CLOSE_MALFORMED
from dashboard.live.rights import user_of
from dashboard.live.sockets import Receive, Send, until_one_ends
from dashboard.notices.reading import bell
from dashboard.runs.door import list_groups_of, people_group

LOOK_SECONDS = 10.0
TICK_SECONDS = 0.2  # what changes meanwhile is told once
AWAY_SECONDS = 2.0


class _News:
    def __init__(self, session_key: str | None):
        self.session_key = session_key
        self.has_changed = asyncio.Event()
        self.list_changed = False
        self._told: dict[str, Any] | None = None

    async def look(self) -> list[dict[str, Any]] | None:
        """What there is to tell; None for who is logged in no more."""
        list_changed, self.list_changed = self.list_changed, False
        now = await database_sync_to_async(self._look)()
        if now is None:
            return None
        messages: list[dict[str, Any]] = [{"type": "runs"}] if list_changed else []
        if now != self._told:
            self._told = now
            messages.append({"type": "notices", **now})
        return messages

    def _look(self) -> dict[str, Any] | None:
        user = user_of(self.session_key)
        return bell(user) if user.is_authenticated else None

    def groups(self) -> list[str]:
        user = user_of(self.session_key)
        return [people_group(user.pk), *list_groups_of(user)] if user.is_authenticated else []

    async def listen(self) -> None:
        """Hear ticks; without Redis there are none, and it is tried again. Teams that she joined since are heard as well."""
        layer = get_channel_layer()
        while True:
            channel, groups = None, []
            try:
                groups = await database_sync_to_async(self.groups)()
                channel = await layer.new_channel()
                for group in groups:
                    await layer.group_add(group, channel)
                while groups:
                    message = await layer.receive(channel)
                    self.list_changed = self.list_changed or message["type"] == "list.changed"
                    self.has_changed.set()
                    if message["type"] == "teams.changed":
                        break
            except Exception:
                await asyncio.sleep(AWAY_SECONDS)
            finally:
                if channel is not None:
                    for group in groups:
                        with suppress(Exception):
                            await layer.group_discard(group, channel)


async def watch_news(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """The ASGI application behind /ws/news/."""
    await receive()  # websocket.connect
    await send({"type": "websocket.accept"})
    news = _News(scope["session"].session_key)
    code = await until_one_ends(_until_gone(receive), _tell(news, send), news.listen())
    if code is not None:
        await send({"type": "websocket.close", "code": code})


async def _until_gone(receive: Receive) -> int | None:
    """This socket only tells."""
    message = await receive()
    return None if message["type"] == "websocket.disconnect" else CLOSE_MALFORMED


async def _tell(news: _News, send: Send) -> int:
    while True:
        messages = await news.look()
        if messages is None:
            return CLOSE_GONE
        for message in messages:
            await send({"type": "websocket.send", "text": json.dumps(message)})
        await asyncio.sleep(TICK_SECONDS)
        with suppress(TimeoutError):
            await asyncio.wait_for(news.has_changed.wait(), LOOK_SECONDS)
        news.has_changed.clear()
