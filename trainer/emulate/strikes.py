"""Faults as they strike: a mark on the timeline, and then what was ordered."""

from __future__ import annotations

import os
import signal
import threading

from trainer.emulate.faults import RankFaults
from trainer.emulate.links import Links
from trainer.splits.messages import Messages
from trainer.trace.writer import Writer


class Strikes:
    """Of one rank, which calls `begin` before each of its steps. Slow ranks are the pacer's part."""

    def __init__(self, faults: RankFaults, writer: Writer, letters: Messages, links: Links | None):
        self._faults, self._writer, self._letters, self._links = faults, writer, letters, links

    def begin(self, step: int) -> None:
        if self._links is not None:
            self._links.slowed = {(fault.rank, fault.peer): fault.factor for fault in self._faults.slow_links(step)}
        for fault in self._faults.at(step):
            self._writer.mark("fault", fault.words, step)
            match fault.kind:
                case "lost-message":
                    self._letters.lose_next(fault.resend_seconds)
                case "kill":
                    self._writer.flush()  # the mark is to be seen
                    os.kill(os.getpid(), signal.SIGKILL)
                case "hang":
                    threading.Event().wait()  # its other threads live on, as those of a rank that is stuck do
