"""Reads one run for all its viewers in this process: follows the stream, and answers from ring, Redis or segments."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from typing import Any, Protocol

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError

from dashboard.live.cursor import STREAM_START, AfterEntry, AfterSealed, Cursor, StreamId, id_of, id_text
from dashboard.live.handover import Sealed, Stream, after_entry
from dashboard.live.messages import Batch
from dashboard.live.ring import Entry, Ring, head_of
from trainer.trace.stream import EVENT, FRAME, frames_key

log = logging.getLogger(__name__)

TICK_SECONDS = 0.1  # viewers hear of news at most this often
BATCH_BYTES = 1_000_000
RING_BYTES = 16_000_000
READ_ENTRIES = 64
BLOCK_MS = 1000
CATCHING_UP = 4  # viewers that are answered from Redis or from segments at one time
AWAY_SECONDS = 0.5  # between two tries to reach Redis


def redis_client(url: str) -> Redis:
    """No retries of its own: viewers are told at once that Redis is away, and `follow` tries again."""
    return Redis.from_url(url, socket_timeout=5, socket_connect_timeout=2, retry=Retry(NoBackoff(), 0))


class History(Protocol):
    """What is sealed of a run; blocking."""

    def sealed(self) -> Sealed: ...

    def batch(self, after: AfterSealed, most_bytes: int) -> Batch:
        """What follows, or an empty batch with the stream's entry to go on from."""


class RunReader:
    """`follow` runs as a task while there are viewers; they wait for `tick` and ask for `batch_after` their cursor."""

    def __init__(self, run_id: str, redis: Redis, history: History):
        self.is_away = False  # Redis does not answer
        self.is_over = False  # the run is sealed, or never began: segments hold all there is
        self._key = frames_key(run_id)
        self._history = history
        self._redis: Any = redis  # its types allow for every protocol's answers
        self._ring = Ring(RING_BYTES, STREAM_START)
        self._catching_up = asyncio.Semaphore(CATCHING_UP)
        self._tick = asyncio.Event()
        self._ticked_at = 0.0

    def tick(self) -> asyncio.Event:
        """Set once there is news after this call."""
        return self._tick

    def finish(self) -> None:
        """The run's segments are complete: nothing is awaited from Redis any more."""
        if not self.is_over:
            self.is_over = True
            self._ring_for_viewers()

    async def close(self) -> None:
        await self._redis.aclose()

    async def follow(self) -> None:
        """Keep the ring at the stream's head until the run is over; Redis may go and come back meanwhile."""
        started = False
        while not self.is_over:
            try:
                if not started:
                    self._ring.restart(await self._last_id() or STREAM_START)
                    started = True
                    self._ring_for_viewers()  # whoever looked before may have taken an empty ring for the head
                await self._read_on()
            except (RedisError, OSError) as error:
                if not self.is_away:
                    log.warning("the stream of %s cannot be read: %s", self._key, error)
                self._set_away(True)
                await asyncio.sleep(AWAY_SECONDS)

    async def batch_after(self, cursor: Cursor) -> Batch:
        """What follows `cursor`; empty, perhaps with another cursor, when the viewer has to wait for the next tick."""
        while True:
            batch = await self._look(cursor)
            if not batch.is_empty or batch.cursor == cursor:
                return batch
            cursor = batch.cursor

    async def _look(self, cursor: Cursor) -> Batch:
        if isinstance(cursor, AfterSealed):
            async with self._catching_up:
                return await asyncio.to_thread(self._history.batch, cursor, BATCH_BYTES)
        held = self._ring.after(cursor.id, BATCH_BYTES)
        if held:
            return _batch(held[-1].id, held)
        if held is not None and cursor.id == self._ring.last and not self.is_over:
            return Batch(cursor)
        async with self._catching_up:
            return await self._look_further(cursor)

    async def _look_further(self, cursor: AfterEntry) -> Batch:
        """What follows when the ring cannot tell."""
        try:
            stream = Stream() if self.is_over else await self._stream_after(cursor.id)
        except (RedisError, OSError):
            return Batch(cursor)  # `follow` says that Redis is away, and ticks when it is back
        sealed = await asyncio.to_thread(self._history.sealed)
        if self.is_over and not sealed.is_complete:
            sealed = replace(sealed, is_complete=True)  # never began, or its files are gone
        found = after_entry(cursor.id, stream, sealed)
        if found.entries:
            return _batch(found.entries[-1].id, found.entries)
        return Batch(found.cursor, complete=found.complete)

    async def _read_on(self) -> None:
        answer = await self._redis.xread({self._key: id_text(self._ring.last)}, count=READ_ENTRIES, block=BLOCK_MS)
        self._set_away(False)
        entries = _entries(answer[0][1]) if answer else []
        if not entries:
            await self._notice_what_no_read_shows()
            return
        is_full = len(entries) == READ_ENTRIES
        sealed = await asyncio.to_thread(self._history.sealed)
        if self._ring.last < sealed.through:  # the stream may have been trimmed past what this reader saw
            self._ring.restart(entries[0].id)
            entries = entries[1:]
        self._ring.extend(entries)
        if not is_full or asyncio.get_running_loop().time() - self._ticked_at >= TICK_SECONDS:
            self._ring_for_viewers()
        if not is_full:
            await asyncio.sleep(TICK_SECONDS)  # what comes meanwhile goes into one batch

    async def _notice_what_no_read_shows(self) -> None:
        """The stream began anew with lower ids, or what came was trimmed before this reader saw it."""
        last = await self._last_id()
        if last is not None and last != self._ring.last:
            self._ring.restart(STREAM_START if last < self._ring.last else last)
            self._ring_for_viewers()

    async def _stream_after(self, id: StreamId) -> Stream:
        """The first entry is looked up last: what it proves to be there was there when the rest was read."""
        following: list[Entry] = []
        while sum(len(entry.data) for entry in following) < BATCH_BYTES:
            start = following[-1].id if following else id
            read = _entries(await self._redis.xrange(self._key, min=f"({id_text(start)}", count=READ_ENTRIES))
            following += read
            if len(read) < READ_ENTRIES:
                break
        last = await self._last_id()
        first = _entries(await self._redis.xrange(self._key, count=1))
        return Stream(first[0].id if first else None, last, tuple(head_of(following, BATCH_BYTES)))

    async def _last_id(self) -> StreamId | None:
        """The id that the stream gave last; None when there is no stream."""
        try:
            return id_of((await self._redis.xinfo_stream(self._key))["last-generated-id"])
        except ResponseError:
            return None

    def _set_away(self, is_away: bool) -> None:
        if is_away != self.is_away:
            self.is_away = is_away
            self._ring_for_viewers()

    def _ring_for_viewers(self) -> None:
        self._ticked_at = asyncio.get_running_loop().time()
        self._tick.set()
        self._tick = asyncio.Event()


def _entries(raw: list[tuple[bytes, dict[bytes, bytes]]]) -> list[Entry]:
    return [Entry(id_of(id), *next(iter(fields.items()))) for id, fields in raw]


def _batch(last: StreamId, entries: Any) -> Batch:
    return Batch(
        AfterEntry(last),
        [entry.data for entry in entries if entry.field == FRAME],
        [json.loads(entry.data) for entry in entries if entry.field == EVENT],
    )
