"""The websocket of a run page: tells the run's state and who watches, and answers each pull with one batch."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from channels.db import database_sync_to_async

from dashboard.live.cursor import Cursor
from dashboard.live.measured import SENT_BYTES
from dashboard.live.messages import (
    CLOSE_GONE,
    CLOSE_IMPATIENT,
    CLOSE_MALFORMED,
    CLOSE_TOO_LONG,
    MOST_CLIENT_BYTES,
    MalformedMessage,
    ShownView,
    parse_message,
)
from dashboard.live.reader import RunReader
from dashboard.live.rights import Right, admit
from dashboard.live.room import Room, enter
from dashboard.live.sockets import Receive, Send, until_one_ends
from dashboard.live.viewer import Viewer
from dashboard.logs import now_about


class _Pulls:
    """What the browser asks for; at most one pull that is not answered."""

    def __init__(self) -> None:
        self._asked: asyncio.Queue[Cursor] = asyncio.Queue()
        self._is_open = False

    def put(self, cursor: Cursor) -> bool:
        """Whether the pull may stand: none does before the last one is answered."""
        if self._is_open:
            return False
        self._is_open = True
        self._asked.put_nowait(cursor)
        return True

    async def get(self) -> Cursor:
        return await self._asked.get()

    def answered(self) -> None:
        self._is_open = False


async def watch_run(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """The ASGI application behind /ws/runs/<id>/ and /ws/s/<token>/."""
    await receive()  # websocket.connect
    await send({"type": "websocket.accept"})  # a refusal before it would reach the page as a mere failure
    right = Right.of(scope)
    admitted = await database_sync_to_async(admit)(right)
    if admitted is None:
        await send({"type": "websocket.close", "code": CLOSE_GONE})
        return
    state, visitor = admitted
    now_about(state["id"])
    viewer = Viewer(right, visitor, state)
    async with enter(viewer, state) as room:
        pulls = _Pulls()
        code = await until_one_ends(_listen(pulls, viewer, room, receive), _tell(viewer, send), _answer(pulls, room.reader, send))
        if code is not None:
            await send({"type": "websocket.close", "code": code})


async def _listen(pulls: _Pulls, viewer: Viewer, room: Room, receive: Receive) -> int | None:
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return None
        text = message.get("text")
        if text is None:
            return CLOSE_MALFORMED
        if len(text) > MOST_CLIENT_BYTES:
            return CLOSE_TOO_LONG
        try:
            asked = parse_message(text)
        except MalformedMessage:
            return CLOSE_MALFORMED
        if isinstance(asked, ShownView):
            if viewer.visitor.is_guest:
                return CLOSE_MALFORMED  # a link's page has no way to ask for this
            room.show_view(viewer, asked.view)
        elif not pulls.put(asked):
            return CLOSE_IMPATIENT


async def _tell(viewer: Viewer, send: Send) -> int | None:
    while True:
        for message in await viewer.news():
            text = json.dumps(message)
            SENT_BYTES.inc(len(text))
            await send({"type": "websocket.send", "text": text})
        if viewer.close_code is not None:
            return viewer.close_code


async def _answer(pulls: _Pulls, reader: RunReader, send: Send) -> int | None:
    while True:
        cursor = await pulls.get()
        while True:
            tick = reader.tick()  # before looking, so that no news falls between the look and the wait
            batch = await reader.batch_after(cursor)
            if not batch.is_empty:
                break
            cursor = batch.cursor
            await tick.wait()
        pulls.answered()  # the browser may ask again before `send` returns
        data = batch.encode()
        SENT_BYTES.inc(len(data))
        await send({"type": "websocket.send", "bytes": data})
