"""More viewers of one run, without browsers: each pulls as a page does and counts what it gets."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass, field

import numpy as np
import websockets

from dashboard.live.messages import decode_batch
from trainer.trace.frame import HEADER


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
            header = np.frombuffer(frames, HEADER, 1, at)[0]
            at += int(header["frame_bytes"])
            rank, before = int(header["rank"]), int(header["spans_before"])
            reached, end = self.reached.get(rank, 0), before + int(header["spans"])
            if end > reached:
                self.reached[rank] = end
                self.spans += end - max(before, reached)


class Viewers:
    """`count` viewers of the run at `url`, in a thread, until the run is complete."""

    def __init__(self, count: int, url: str, cookie: str, origin: str):
        self.counted = [Counted() for _ in range(count)]
        self._url, self._cookie, self._origin = url, cookie, origin
        self._thread = threading.Thread(target=lambda: asyncio.run(self._watch_all()), daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)

    async def _watch_all(self) -> None:
        await asyncio.gather(*(self._watch(counted) for counted in self.counted))

    async def _watch(self, counted: Counted) -> None:
        headers = {"Cookie": self._cookie}
        async with websockets.connect(
            self._url, origin=websockets.Origin(self._origin), additional_headers=headers, max_size=None, compression=None
        ) as socket:
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
