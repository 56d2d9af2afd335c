"""More viewers of one run, without browsers: each pulls as a page does and counts what it gets."""

from __future__ import annotations

import asyncio
import json
import struct
import threading
from dataclasses import dataclass, field

import websockets

from dashboard.bench.place import CannotMeasure
from dashboard.live.messages import decode_batch

# rank, frame_bytes, spans and spans_before of trainer.trace.frame.HEADER, at the price of one call: twenty viewers get
# thousands of frames a second, and share two cores with what is measured.
_OF_HEADER = struct.Struct("<4xI8xI4xI12xQ")


@dataclass
class Counted:
    """What one viewer was sent; `reached` says up to which of its spans each rank was shown.

    From a sealed segment a rank's frames come merged into one, of which a viewer may hold the first part already.
    """

    spans: int = 0
    received_bytes: int = 0
    complete: bool = False
    reached: dict[int, int] = field(default_factory=dict)

    def take(self, frames: bytes) -> None:
        at = 0
        while at < len(frames):
            rank, frame_bytes, spans, before = _OF_HEADER.unpack_from(frames, at)
            at += frame_bytes
            reached, end = self.reached.get(rank, 0), before + spans
            if end > reached:
                self.reached[rank] = end
                self.spans += end - max(before, reached)


class Viewers:
    """`count` viewers of the run at `url`, in a thread, until the run is complete."""

    def __init__(self, count: int, url: str, cookie: str, origin: str):
        self.counted = [Counted() for _ in range(count)]
        self._url, self._cookie, self._origin = url, cookie, origin
        self._connected = threading.Semaphore(0)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._watch_all()), daemon=True)
        self._thread.start()

    def wait_until_connected(self, seconds: float = 30) -> None:
        for _ in self.counted:
            if not self._connected.acquire(timeout=seconds):
                raise CannotMeasure(f"a viewer was not let in within {seconds:.0f} s")

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)

    async def _watch_all(self) -> None:
        await asyncio.gather(*(self._watch(counted) for counted in self.counted))

    async def _watch(self, counted: Counted) -> None:
        headers = {"Cookie": self._cookie}
        async with websockets.connect(
            self._url, origin=websockets.Origin(self._origin), additional_headers=headers, max_size=None, compression=None
        ) as socket:
            self._connected.release()
            cursor = None
            while not counted.complete:
                await socket.send(json.dumps({"type": "pull", "after": cursor}))
                message = await socket.recv()
                while isinstance(message, str):  # of the run's state
                    message = await socket.recv()
                counted.received_bytes += len(message)
                meta, frames = decode_batch(message)
                counted.take(frames)
                cursor, counted.complete = meta["cursor"], meta["complete"]
