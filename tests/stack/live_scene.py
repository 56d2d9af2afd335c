"""Ranks, a recorder and a page for tests of the way from the stream to the browser; the sockets are real ASGI ones."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import redis
from asgiref.testing import ApplicationCommunicator
from channels.layers import get_channel_layer

from dashboard.live.messages import decode_batch
from trainer.trace.frame import COUNTER_COLUMNS, HEADER, MARK_COLUMNS, SPAN_COLUMNS, Frame, decode, empty, encode
from trainer.trace.kinds import Kind, Lane
from trainer.trace.store import StoreWriter
from trainer.trace.stream import EVENT, FRAME, frames_key

SPANS_A_FRAME = 5


def span_id(rank: int, number: int) -> tuple[int, float]:
    return rank, number * 1000.0


class Rank:
    def __init__(self, url: str, run_id: str, rank: int = 0):
        self.redis, self.key, self.rank = redis.Redis.from_url(url), frames_key(run_id), rank
        self.sequence = 0
        self.written: set[tuple[int, float]] = set()

    def flush(self, frames: int = 1) -> None:
        """Send that many frames, each with a few spans that no other has."""
        for _ in range(frames):
            before = self.sequence * SPANS_A_FRAME
            numbers = np.arange(before, before + SPANS_A_FRAME)
            spans = empty(SPAN_COLUMNS, SPANS_A_FRAME)
            spans["start_ns"][:], spans["duration_ns"][:] = numbers * 1000.0, 900.0
            spans["kind"][:], spans["lane"][:] = Kind.FORWARD, Lane.COMPUTE
            self.sequence += 1
            frame = Frame(self.rank, self.sequence, spans, empty(COUNTER_COLUMNS), empty(MARK_COLUMNS), [""], spans_before=before)
            self.redis.xadd(self.key, {FRAME: encode(frame)})
            self.written |= {span_id(self.rank, int(number)) for number in numbers}


class Recorder:
    """Seals what the stream holds, and then trims it."""

    def __init__(self, url: str, run_id: str, store: Path):
        self.redis, self.key, self.store = redis.Redis.from_url(url), frames_key(run_id), StoreWriter(store)

    def say(self, **event: object) -> None:
        self.redis.xadd(self.key, {EVENT: json.dumps(event)})

    def seal(self, complete: bool = False, trim: bool = True) -> None:
        for id, fields in self.redis.xrange(self.key, min=f"({self.store.manifest.sealed_through}"):
            if FRAME in fields:
                self.store.add(decode(fields[FRAME]), id.decode())
                continue
            event = json.loads(fields[EVENT])
            if event["type"] == "steps":
                self.store.add_steps(event["rows"])
            self.store.passed(id.decode())
        self.store.seal(complete)
        if trim:
            self.redis.xtrim(self.key, minid=_next(self.store.manifest.sealed_through), approximate=False)


class Page:
    """A viewer that drops doubles by rank and sequence number, as the real page does."""

    def __init__(self, application, path: str, cookie: str = "", origin: str = "http://localhost"):
        headers = [(b"origin", origin.encode()), (b"host", b"localhost")]
        if cookie:
            headers.append((b"cookie", cookie.encode()))
        scope = {"type": "websocket", "path": unquote(path), "query_string": b"", "headers": headers, "subprotocols": []}
        self.socket = ApplicationCommunicator(application, scope)
        self.cursor: str | None = None
        self.spans: list[tuple[int, float]] = []
        self.events: list[dict] = []
        self.states: list[dict] = []
        self.people: dict = {}
        self.lead: dict | None = None
        self.redis_away: bool | None = None
        self.complete = False
        self.close_code: int | None = None
        self._sequence: dict[int, int] = {}

    async def open(self) -> bool:
        await self.socket.send_input({"type": "websocket.connect"})
        return (await self.socket.receive_output(timeout=5))["type"] == "websocket.accept"

    async def send(self, **message: object) -> None:
        await self.socket.send_input({"type": "websocket.receive", **message})

    async def pull(self, seconds: float = 5) -> None:
        """Ask, and take in everything up to the batch that answers."""
        await self.send(text=json.dumps({"type": "pull", "after": self.cursor}))
        await self.until_batch(seconds)

    async def until_batch(self, seconds: float = 5) -> None:
        while await self._receive(seconds) != "batch":
            assert self.close_code is None, f"closed with {self.close_code}"

    async def until(self, holds, seconds: float = 5) -> None:
        while not holds():
            await self._receive(seconds)

    async def pull_to_the_end(self) -> None:
        while not self.complete:
            await self.pull()

    async def pull_until(self, wanted: set[tuple[int, float]]) -> None:
        while not wanted <= set(self.spans):
            await self.pull()

    async def _receive(self, seconds: float) -> str:
        message = await self.socket.receive_output(timeout=seconds)
        if message["type"] == "websocket.close":
            self.close_code = message["code"]
            return "close"
        if message.get("bytes") is not None:
            self._take(message["bytes"])
            return "batch"
        told = json.loads(message["text"])
        if told["type"] == "state":
            self.states.append(told["run"])
        elif told["type"] == "people":
            self.people = told
        elif told["type"] == "lead":
            self.lead = told["lead"]
        else:
            self.redis_away = told["away"]
        return told["type"]

    def _take(self, data: bytes) -> None:
        meta, body = decode_batch(data)
        self.cursor, self.complete = meta["cursor"], meta["complete"]
        self.events += meta["events"]
        at = 0
        for _ in range(meta["frames"]):
            size = int(np.frombuffer(body, HEADER, 1, at)["frame_bytes"][0])
            frame = decode(body[at : at + size])
            at += size
            if frame.sequence <= self._sequence.get(frame.rank, 0):
                continue
            self._sequence[frame.rank] = frame.sequence
            fresh = [(frame.rank, start) for start in frame.spans["start_ns"].tolist()]
            # A merged frame may repeat spans to a page that was away in the middle of a segment.
            self.spans += [span for span in fresh if not meta["merged"] or span not in self.spans]
        assert at == len(body)

    async def close(self) -> None:
        await self.socket.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.socket.wait(timeout=5)


def _next(id: str) -> str:
    milliseconds, counter = id.split("-")
    return f"{milliseconds}-{int(counter) + 1}"


async def until_heard(*groups: str) -> None:
    """Until some page's socket listens to the ticks of each group; only then can one reach it."""
    listeners = get_channel_layer().groups  # of the layer in memory, which these tests run on
    async with asyncio.timeout(10):
        while not all(listeners.get(group) for group in groups):
            await asyncio.sleep(0.01)
