"""What a rank records on the way to its next frame: compiled (`packed.c`), or in Python alone where that cannot be had.

While a frame is made the training thread waits for Python's global lock: compiled, a tenth of the time that Python takes.
"""

from __future__ import annotations

from typing import Protocol

from trainer.trace.columns import LANES
from trainer.trace.frame import NONE
from trainer.trace.packer import plain
from trainer.trace.row import Add, Recorder, Taken, Tracepoint
from trainer.trace.steady_clock import SteadyClock

try:
    from trainer.trace.packer import packed
except ImportError:
    IS_COMPILED = False
else:
    IS_COMPILED = True


class Packer(Recorder, Protocol):
    """Spans in the order in which they were added, from any thread."""

    def __len__(self) -> int:
        """How many rows wait, those that will be refused among them."""

    def take(self, clock: SteadyClock, zero_ns: int) -> Taken:
        """The oldest rows, at most MOST_ROWS, from this machine's clock to the run's, which is 0 at `zero_ns` on `clock`."""


class Compiled:
    def __init__(self) -> None:
        self._packed = packed.Packer(LANES.tobytes())
        self.add: Add = self._packed.add

    def tracepoint(self, kind: int, name: str, group: str = "", *, micro_batch: int = NONE, stage: int = NONE, peer: int = NONE,
                   size_bytes: int = NONE) -> Tracepoint:
        return self._packed.tracepoint(kind, micro_batch, stage, peer, size_bytes, name, group)

    def __len__(self) -> int:
        return len(self._packed)

    def take(self, clock: SteadyClock, zero_ns: int) -> Taken:
        return Taken(*self._packed.take(clock.packed_pieces, zero_ns))


def new_packer() -> Packer:
    return Compiled() if IS_COMPILED else plain.Packer()
