"""The way from a writer to its sink: frames leave in order, whatever becomes of the sink meanwhile.

While the sink is away frames go to the spill file at once, so that not even a killed rank takes them
along; memory holds what the disk refuses. Older frames always leave first: spill, memory, new.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from pathlib import Path

from trainer.trace.sinks import Sink, append_frame, read_frames, whole_bytes

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.1, 2.0


class Outbox:
    """Used by one thread. `spans_dropped` counts the spans of frames that found no room anywhere."""

    def __init__(self, sink: Sink, spill: Path, memory_bytes: int = 16 << 20, spill_bytes: int = 1 << 30):
        self.spans_dropped = 0
        self._sink, self._spill = sink, spill
        self._memory_bytes, self._spill_bytes = memory_bytes, spill_bytes
        self._memory: deque[tuple[bytes, int]] = deque()  # a frame and its number of spans
        self._in_memory = 0
        self._spilled = whole_bytes(spill)  # bytes in the spill file, also of whoever had this rank's place before
        self._resent = 0  # bytes of it that the sink has taken
        self._pause_seconds = FIRST_PAUSE_SECONDS
        self._away_until = 0.0

    @property
    def is_empty(self) -> bool:
        return not self._memory and self._resent == self._spilled

    def put(self, frame: bytes, spans: int) -> None:
        """Send the frame, or keep it until the sink is back."""
        if self.drain():
            try:
                self._sink.send(frame)
                return
            except Exception as error:  # SinkAway, or whatever else: the frame did not surely go
                self._went_away(error)
        self._keep(frame, spans)

    def drain(self, anyway: bool = False) -> bool:
        """Send what is kept; whether all of it went. Pauses between attempts grow, unless `anyway`."""
        if self.is_empty and not self._away_until:
            return True
        if not anyway and time.monotonic() < self._away_until:
            return False
        try:
            self._send_spill()
            while self._memory:
                frame, _ = self._memory[0]
                self._sink.send(frame)
                self._memory.popleft()
                self._in_memory -= len(frame)
        except Exception as error:  # SinkAway, or the spill file cannot be read: nothing is given up
            self._went_away(error)
            return False
        if self._away_until:
            log.info("frames are taken again")
        self._away_until, self._pause_seconds = 0.0, FIRST_PAUSE_SECONDS
        return True

    def _send_spill(self) -> None:
        if self._resent == self._spilled:
            return
        for frame, end in read_frames(self._spill, self._resent):
            self._sink.send(frame)
            self._resent = end
        self._spill.unlink(missing_ok=True)
        self._spilled = self._resent = 0

    def spill_all(self) -> None:
        """Put on disk what is still in memory; what the disk refuses is dropped and counted."""
        self._move_memory_to_spill()
        while self._memory:
            self._drop_oldest()

    def _keep(self, frame: bytes, spans: int) -> None:
        self._memory.append((frame, spans))
        self._in_memory += len(frame)
        self._move_memory_to_spill()
        while self._in_memory > self._memory_bytes:
            self._drop_oldest()

    def _move_memory_to_spill(self) -> None:
        try:
            if not self._spilled:
                self._spill.parent.mkdir(parents=True, exist_ok=True)
            while self._memory and self._spilled + len(self._memory[0][0]) <= self._spill_bytes:
                frame, _ = self._memory[0]
                append_frame(self._spill, frame)
                self._memory.popleft()
                self._in_memory -= len(frame)
                self._spilled += len(frame)
        except OSError as error:
            log.warning("frames stay in memory, the spill file cannot be written: %s", error)

    def _drop_oldest(self) -> None:
        frame, spans = self._memory.popleft()
        self._in_memory -= len(frame)
        self.spans_dropped += spans

    def _went_away(self, error: Exception) -> None:
        if not self._away_until:
            log.warning("frames are kept until their sink is back: %s", error)
        self._away_until = time.monotonic() + self._pause_seconds
        self._pause_seconds = min(2 * self._pause_seconds, LONGEST_PAUSE_SECONDS)
