"""One rank's marching orders, and the few bytes of memory through which a run is told to stop."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

from trainer.lives import FIRST_LIFE, Life


@dataclass(frozen=True)
class RankJob:
    """What `trainer.rank.main` needs. `rendezvous_fd` is a listening socket that rank 0 inherits, else -1."""

    run: str
    rank: int
    spec_json: str
    folder: Path
    rendezvous_port: int
    rendezvous_fd: int = -1
    redis_url: str = ""
    flush_ms: float = 100.0
    life: Life = FIRST_LIFE


class Control:
    """Shared memory of one run's ranks, made before they fork.

    A stop has to fall between the same two steps on every rank. Whoever wants it calls
    `request_stop`; rank 0, at the start of step s, answers by allowing steps up to s + 1. No rank
    can be further than that, since every step ends in an exchange with all others.

    What a next life of the run has to know is here as well, since it outlives the ranks.
    """

    _HEAD = struct.Struct("<qqq")  # stop requested, last step allowed, the run clock's zero in ns
    _RANK = struct.Struct("<qqq")  # the step it is in, frames and spans written
    _NUMBER = struct.Struct("<q")
    _NO_LIMIT = 2**62

    def __init__(self, ranks: int):
        self.ranks = ranks
        self._memory = mmap.mmap(-1, self._HEAD.size + ranks * self._RANK.size)
        self._HEAD.pack_into(self._memory, 0, 0, self._NO_LIMIT, 0)
        for rank in range(ranks):
            self.begin_step(rank, -1)

    def request_stop(self) -> None:
        self._NUMBER.pack_into(self._memory, 0, 1)

    def begin_step(self, rank: int, step: int) -> None:
        self._NUMBER.pack_into(self._memory, self._at(rank), step)

    def steps(self) -> list[int]:
        """The step each rank is in; -1 before the first."""
        return [self._NUMBER.unpack_from(self._memory, self._at(rank))[0] for rank in range(self.ranks)]

    def may_begin(self, rank: int, step: int) -> bool:
        """Whether `rank` may begin `step`, its steps begun before counting from 0."""
        requested, last_allowed, _ = self._HEAD.unpack_from(self._memory, 0)
        if rank == 0 and requested and last_allowed == self._NO_LIMIT:
            last_allowed = step + 1
            self._NUMBER.pack_into(self._memory, self._NUMBER.size, last_allowed)
        return step <= last_allowed

    @property
    def zero_ns(self) -> int:
        return int(self._NUMBER.unpack_from(self._memory, 2 * self._NUMBER.size)[0])

    def set_zero(self, zero_ns: int) -> None:
        self._NUMBER.pack_into(self._memory, 2 * self._NUMBER.size, zero_ns)

    def note_written(self, rank: int, frames: int, spans: int) -> None:
        """Before the last of so many frames leaves: if it never does, its number shows that one is missing."""
        self._NUMBER.pack_into(self._memory, self._at(rank) + 2 * self._NUMBER.size, spans)
        self._NUMBER.pack_into(self._memory, self._at(rank) + self._NUMBER.size, frames)

    def written(self, rank: int) -> tuple[int, int]:
        """(frames, spans) that the rank has written, in all lives."""
        _, frames, spans = self._RANK.unpack_from(self._memory, self._at(rank))
        return frames, spans

    def _at(self, rank: int) -> int:
        return self._HEAD.size + rank * self._RANK.size
