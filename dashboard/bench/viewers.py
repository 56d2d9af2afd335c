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
    """What one viewer was sent; `sequences` holds each rank's last frame."""

    spans: int = 0
    complete: bool = False
    sequences: dict[int, int] = field(default_factory=dict)

    def take(self, frames: bytes) -> None:
        at = 0
        while at < len(frames):
            header = np.frombuffer(frames, HEADER, 1, at)[0]
            at += int(header["frame_bytes"])
            rank, sequence = int(header["rank"]), int(header["sequence"])
            if sequence > self.sequences.get(rank, 0):
                self.sequences[rank] = sequence
                self.spans += int(header["spans"])


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
                meta, frames = decode_batch(message)
                counted.take(frames)
                cursor, counted.complete = meta["cursor"], meta["complete"]
