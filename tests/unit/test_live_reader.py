"""Whatever the order of writing, sealing, trimming, forgetting and pulling: every viewer gets everything.

Redis and the store are lists in memory here; the same with the real ones is in tests/stack.
"""

import asyncio
import random
from types import SimpleNamespace

import pytest
from redis.exceptions import ConnectionError as RedisAway
from redis.exceptions import ResponseError

from dashboard.live import reader as reader_module
from dashboard.live.cursor import START, AfterEntry, AfterSealed, id_of, id_text, parse
from dashboard.live.handover import Sealed
from dashboard.live.messages import Batch
from dashboard.live.reader import RunReader
from trainer.trace.stream import FRAME


class MemoryRedis:
    """One stream, with the answers of the real one."""

    def __init__(self):
        self.entries, self.last, self.away, self.reads = [], None, False, 0
        self.grew = asyncio.Event()

    def add(self, id, data):
        self.entries.append(((id, 0), data))
        self.last = (id, 0)
        self.grew.set()

    def trim(self, through):
        self.entries = [entry for entry in self.entries if entry[0] > through]

    def forget(self):
        self.entries, self.last = [], None

    async def xread(self, streams, count, block):
        after = id_of(next(iter(streams.values())))
        if not self._following(after):
            self.grew.clear()
            await self.grew.wait()
        found = self._following(after)[:count]
        return [[b"key", found]] if found else []

    async def xrange(self, key, min="-", count=None):
        self.reads += 1
        return self._following((-1, 0) if min == "-" else id_of(min.lstrip("(")))[:count]

    async def xinfo_stream(self, key):
        if self.away:
            raise RedisAway
        if self.last is None:
            raise ResponseError("no such key")
        return {"last-generated-id": id_text(self.last).encode()}

    def _following(self, after):
        if self.away:
            raise RedisAway
        return [(id_text(id).encode(), {FRAME: data}) for id, data in self.entries if id > after]


class MemoryHistory:
    def __init__(self):
        self.segments, self.through, self.complete = [], [], False

    def seal(self, redis):
        fresh = [entry for entry in redis.entries if entry[0] > (self.through[-1] if self.through else (0, 0))]
        if fresh:
            self.segments.append([data for _, data in fresh])
            self.through.append(fresh[-1][0])

    def sealed(self):
        through = tuple(self.through)
        return Sealed(through, through[-1] if through else (0, 0), self.complete)

    def batch(self, after, most_bytes):
        if after.segment < len(self.segments):
            return Batch(AfterSealed(after.segment + 1), self.segments[after.segment], merged=True)
        return Batch(AfterEntry(self.sealed().through))


class Page:
    """A viewer that goes on from its cursor, as text, and knows what it has."""

    def __init__(self, reader):
        self.reader, self.cursor, self.got, self.complete = reader, START, [], False

    async def pull(self):
        batch = await self.reader.batch_after(parse(str(self.cursor)))
        self.cursor = batch.cursor
        self.got += [frame for frame in batch.frames if frame not in self.got]
        self.complete = batch.complete
        return batch


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(reader_module, "TICK_SECONDS", 0)
    monkeypatch.setattr(reader_module, "AWAY_SECONDS", 0)
    monkeypatch.setattr(reader_module, "RING_BYTES", 40)
    monkeypatch.setattr(reader_module, "BATCH_BYTES", 30)


async def settle():
    """Let the following task and its threads catch up with what was done."""
    for _ in range(5):
        await asyncio.sleep(0)
    await asyncio.to_thread(lambda: None)
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
async def scene():
    redis, history = MemoryRedis(), MemoryHistory()
    reader = RunReader("r", redis, history)
    following = asyncio.create_task(reader.follow())
    yield SimpleNamespace(redis=redis, history=history, reader=reader)
    following.cancel()


@pytest.mark.parametrize("seed", range(60))
async def test_every_viewer_gets_every_frame_in_order(scene, seed):
    chance = random.Random(seed)
    redis, history, reader = scene.redis, scene.history, scene.reader
    pages, written = [Page(reader)], []
    for _ in range(120):
        match chance.choice(["write"] * 6 + ["seal"] * 2 + ["trim", "pull", "pull", "pull", "join", "settle", "settle"]):
            case "write":
                written.append(b"frame %03d" % len(written))
                redis.add(len(written), written[-1])
            case "seal":
                history.seal(redis)
            case "trim" if history.through:
                redis.trim(history.through[-1])
            case "pull":
                await chance.choice(pages).pull()
            case "join" if len(pages) < 5:
                pages.append(Page(reader))
            case "settle":
                await settle()
    history.seal(redis)
    history.complete = True
    redis.forget()
    reader.finish()
    for page in pages:
        for _ in range(200):
            if page.complete:
                break
            await page.pull()
        assert page.got == written and page.complete


async def test_a_flushed_redis_stalls_no_viewer(scene):
    redis, reader = scene.redis, scene.reader
    page = Page(reader)
    for id in range(100, 104):
        redis.add(id, b"old %d" % id)
    await settle()
    await page.pull()
    assert len(page.got) >= 3
    redis.forget()
    for id in range(1, 4):  # the clock was set back: ids lower than the viewer's
        redis.add(id, b"new %d" % id)
    for _ in range(6):
        await settle()
        await page.pull()
    assert page.got[-3:] == [b"new 1", b"new 2", b"new 3"]
    redis.add(4, b"new 4")
    await settle()
    await page.pull()
    assert page.got[-1] == b"new 4"


async def test_while_redis_is_away_viewers_hear_it_and_then_go_on(scene):
    redis, reader = scene.redis, scene.reader
    page = Page(reader)
    redis.add(1, b"one")
    await settle()
    await page.pull()
    redis.away = True
    redis.add(2, b"two")
    tick = reader.tick()
    await asyncio.wait_for(tick.wait(), 5)
    assert reader.is_away and (await page.pull()).is_empty
    redis.away = False
    while reader.is_away:
        await asyncio.wait_for(reader.tick().wait(), 5)
    await settle()
    await page.pull()
    assert page.got == [b"one", b"two"]


async def test_viewers_at_the_head_cost_redis_nothing(scene):
    redis, reader = scene.redis, scene.reader
    pages = [Page(reader) for _ in range(50)]
    for page in pages:
        await page.pull()
    await settle()
    before = redis.reads
    for id in range(1, 20):
        redis.add(id, b"frame %d" % id)
        await settle()
        for page in pages:
            await page.pull()
    assert redis.reads == before
    assert all(len(page.got) == 19 for page in pages)


async def test_a_run_that_never_began_is_complete_at_once(scene):
    reader = scene.reader
    reader.finish()
    batch = await reader.batch_after(START)
    assert batch.complete and not batch.frames


async def test_a_slow_viewer_keeps_the_ring_within_its_bytes(scene):
    redis, reader = scene.redis, scene.reader
    page = Page(reader)
    await page.pull()
    for id in range(1, 500):
        redis.add(id, b"frame %03d" % id)
        if id % 10 == 0:
            await settle()
            assert reader._ring.bytes <= 40
    await settle()
    while not (await page.pull()).is_empty:
        pass
    assert len(page.got) == 499
