"""One run's viewers in this process: they share one reader of its stream, one watcher of its state, and see each other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.conf import settings

from dashboard.live.history import StoredHistory
from dashboard.live.messages import CLOSE_GONE
from dashboard.live.presence import BEAT_SECONDS, HELLO, PEOPLE, Lead, Presence
from dashboard.live.reader import TICK_SECONDS, RunReader, redis_client
from dashboard.live.rights import look
from dashboard.live.viewer import Viewer
from dashboard.runs.door import CHANGED, group_of

log = logging.getLogger(__name__)

ACTIVE_SECONDS = 2.0  # a tick can be lost, so the state is read again by itself: often while the run goes on,
SETTLED_SECONDS = 10.0  # seldom once it is over, when only the right to see it can change


class Room:
    def __init__(self, run_id: str, state: dict[str, Any]):
        self.run_id = run_id
        self.viewers: set[Viewer] = set()
        url = settings.CONF.redis_url or "redis://127.0.0.1:6379/0"
        self.reader = RunReader(run_id, redis_client(url), StoredHistory(run_id))
        self.presence = Presence()
        self._layer = get_channel_layer()
        self._changed = asyncio.Event()
        self._people_changed = asyncio.Event()
        self._to_send: dict[str, dict[str, Any]] = {}  # to the other processes; of each kind the latest
        self._beat_at = 0.0
        self._note(state)
        works = (self.reader.follow(), self._tell_redis(), self._listen(), self._watch(), self._tell_people())
        self._tasks = [asyncio.create_task(work) for work in works]

    async def close(self) -> None:
        with suppress(Exception):
            await self._layer.group_send(group_of(self.run_id), self.presence.beat())
        pending = set(self._tasks)
        while pending:  # the Redis client swallows a cancellation that falls into its handshake
            for task in pending:
                task.cancel()
            _, pending = await asyncio.wait(pending, timeout=0.2)
        await self.reader.close()

    def look_soon(self) -> None:
        """Whoever has just come in may have been admitted with an older state than the others were told."""
        self._changed.set()

    def people_changed(self) -> None:
        """Somebody came in or left."""
        self.presence.set_own(viewer.visitor for viewer in self.viewers)
        self._send(self.presence.beat())

    def show_view(self, viewer: Viewer, view: str | None) -> None:
        """`viewer` shows her view to the others; with None she no longer does."""
        visitor = viewer.visitor
        if view is not None:
            self.presence.lead = Lead(visitor.key, visitor.name, view)
        elif self.presence.lead and self.presence.lead.key == visitor.key:
            self.presence.lead = None
        self._send(self.presence.lead_message())

    def _send(self, message: dict[str, Any]) -> None:
        self._to_send[message["type"]] = message
        self._people_changed.set()

    async def _tell_people(self) -> None:
        """Tell viewers here and processes elsewhere who watches and who leads, at most every TICK_SECONDS."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._people_changed.wait(), BEAT_SECONDS)
            if not self._people_changed.is_set():
                self._to_send[PEOPLE] = self.presence.beat()
            self._people_changed.clear()
            people = self.presence.people()
            for viewer in self.viewers:
                viewer.tell_people(people)
                viewer.tell_lead(self.presence.lead)
            to_send, self._to_send = self._to_send, {}
            for message in to_send.values():
                with suppress(Exception):  # Redis is away: those of this process see each other all the same
                    await self._layer.group_send(group_of(self.run_id), message)
            await asyncio.sleep(TICK_SECONDS)

    def _hear(self, message: dict[str, Any]) -> None:
        """A tick, or what another process says of its viewers."""
        if message["type"] == CHANGED:
            self._changed.set()
            return
        self.presence.hear(message)
        if message["type"] == HELLO and message["process"] != self.presence.process:
            self._send(self.presence.beat())
            if self.presence.leads_here():
                self._send(self.presence.lead_message())
        self._people_changed.set()

    def _note(self, state: dict[str, Any]) -> None:
        if state["sealed"] is not None or (state["has_ended"] and state["started"] is None):
            self.reader.finish()

    async def _watch(self) -> None:
        """Tell the viewers of every change of the run, and show those out who may no longer see it."""
        while True:
            settled = self.reader.is_over
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), SETTLED_SECONDS if settled else ACTIVE_SECONDS)
            self._changed.clear()
            try:
                await self._look_again()
            except Exception:  # the database may be away for a while; the viewers keep what they have
                log.exception("the state of run %s cannot be read", self.run_id)
            await asyncio.sleep(TICK_SECONDS)  # ticks that come meanwhile are one

    async def _look_again(self) -> None:
        viewers = list(self.viewers)
        state, open_rights = await database_sync_to_async(look)(self.run_id, [viewer.right for viewer in viewers])
        now = asyncio.get_running_loop().time()
        is_beat = now - self._beat_at >= SETTLED_SECONDS  # pages take a longer silence for a dead connection
        if is_beat:
            self._beat_at = now
        if state is not None:
            self._note(state)
        for viewer in viewers:
            if state is None or viewer.right not in open_rights:
                viewer.close(CLOSE_GONE)
            else:
                viewer.tell_state(state, even_if_known=is_beat)

    async def _tell_redis(self) -> None:
        was_away = False
        while True:
            tick = self.reader.tick()
            if self.reader.is_away != was_away:
                was_away = self.reader.is_away
                for viewer in self.viewers:
                    viewer.tell_redis(was_away)
            await tick.wait()

    async def _listen(self) -> None:
        """Hear ticks from the channel layer. Without Redis there are none, and it is tried again."""
        layer = self._layer
        group = group_of(self.run_id)
        while True:
            channel = None
            while self.reader.is_away:
                await self.reader.tick().wait()
            try:
                channel = await layer.new_channel()
                await layer.group_add(group, channel)
                self._send(self.presence.hello())
                while True:
                    self._hear(await layer.receive(channel))
            except Exception as error:
                log.info("no ticks of run %s for now: %s", self.run_id, error)
                await asyncio.sleep(ACTIVE_SECONDS)
            finally:
                if channel is not None:
                    with suppress(Exception):
                        await layer.group_discard(group, channel)


_rooms: dict[str, Room] = {}


def viewers_here() -> int:
    """Who watches through this process, over all runs. From any thread."""
    return sum(len(room.viewers) for room in list(_rooms.values()))


@asynccontextmanager
async def enter(viewer: Viewer, state: dict[str, Any]) -> AsyncIterator[Room]:
    """The run's room, for as long as the viewer stays; the last to leave closes it."""
    run_id = state["id"]
    room = _rooms.get(run_id)
    if room is None:
        room = _rooms[run_id] = Room(run_id, state)
    room.viewers.add(viewer)
    room.people_changed()
    room.look_soon()
    if room.reader.is_away:
        viewer.tell_redis(True)
    try:
        yield room
    finally:
        room.viewers.discard(viewer)
        room.people_changed()
        if not room.viewers:
            del _rooms[run_id]
            await room.close()
