"""Another clock's time that runs steadily while the line it follows is measured anew again and again.

Spans of a lane do not overlap, and a rank's next action begins when the last one ends, also where a new measurement
moves the line in between. So one moment of this clock is one moment of the other for ever; what a new line corrects is
caught up with gently from a moment on that lies ahead of all that was recorded, as NTP slews a clock.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from trainer.trace.clock_line import Line

SLEW = 1e-3  # a tenth of a millisecond is caught up with in a tenth of a second
STEP_NS = 10_000_000  # what is further off was a jump: no use to be gentle
AHEAD_NS = 250_000_000  # longer than a flush takes, which may still work with the clock before this one
MOST_PIECES = 128  # half an hour; older moments go by the oldest piece
_PIECE = struct.Struct("=qqd")


@dataclass(frozen=True)
class SteadyClock:
    """Straight pieces: from `starts[i]` on the other clock less this one is `offsets[i] + rates[i] · (local_ns − starts[i])`."""

    line: Line
    starts: tuple[int, ...]
    offsets: tuple[int, ...]
    rates: tuple[float, ...]

    @classmethod
    def of(cls, line: Line) -> SteadyClock:
        return cls(line, (line.at_ns,), (line.offset_ns,), (line.drift,))

    def towards(self, line: Line, now_ns: int) -> SteadyClock:
        """The clock that follows `line` from soon after `now_ns` on; until then it is this one."""
        from_ns = now_ns + AHEAD_NS
        kept = sum(start < from_ns for start in self.starts)
        off_ns = line.offset_at(from_ns) - self.offset_at(from_ns)
        pieces = list(zip(self.starts, self.offsets, self.rates, strict=True))[:kept]
        if 0 < abs(off_ns) <= STEP_NS:
            pieces.append((from_ns, self.offset_at(from_ns), line.drift + (SLEW if off_ns > 0 else -SLEW)))
            from_ns += round(abs(off_ns) / SLEW)
        pieces.append((from_ns, line.offset_at(from_ns), line.drift))
        starts, offsets, rates = zip(*pieces[-MOST_PIECES:], strict=True)
        return SteadyClock(line, starts, offsets, rates)

    @cached_property
    def packed_pieces(self) -> bytes:
        """One after another: start and offset as int64, rate as float64."""
        pieces = zip(self.starts, self.offsets, self.rates, strict=True)
        return b"".join(_PIECE.pack(*piece) for piece in pieces)

    def offset_at(self, local_ns: int) -> int:
        at = max(0, bisect_right(self.starts, local_ns) - 1)
        return self.offsets[at] + round(self.rates[at] * (local_ns - self.starts[at]))

    def to_other(self, local_ns: int) -> int:
        return local_ns + self.offset_at(local_ns)

    def all_to_other(self, local_ns: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The same for whole numbers in an array."""
        if len(self.starts) == 1 and not self.rates[0]:
            return local_ns + self.offsets[0]
        starts = np.array(self.starts)
        at = np.maximum(np.searchsorted(starts, local_ns, side="right") - 1, 0)
        moved = np.rint(np.array(self.rates)[at] * (local_ns - starts[at])).astype(np.int64)
        return local_ns + np.array(self.offsets)[at] + moved

    def to_local(self, other_ns: int) -> int:
        """When this clock shows it that the other shows `other_ns`; to the nanosecond."""
        at = len(self.starts) - 1
        while at > 0 and self.starts[at] + self.offsets[at] > other_ns:
            at -= 1
        return self.starts[at] + round((other_ns - self.starts[at] - self.offsets[at]) / (1 + self.rates[at]))

    def uncertainty_at(self, local_ns: int) -> float:
        """The line's, and what is still to be caught up with."""
        return self.line.uncertainty_at(local_ns) + abs(self.offset_at(local_ns) - self.line.offset_at(local_ns))


THIS_CLOCK = SteadyClock.of(Line())
