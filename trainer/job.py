"""One rank's marching orders, and the few bytes of memory through which a run is told to stop."""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path


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


class Control:
    """Shared memory of one run's ranks, made before they fork.

    A stop has to fall between the same two steps on every rank. Whoever wants it sets
    `stop_requested`; rank 0, at the start of step s, answers by allowing steps up to s + 1. No rank
    can be further than that, since every step ends in an exchange with all others.
    """

    _HEAD = struct.Struct("<qq")  # stop requested, last step allowed
    _STEP = struct.Struct("<q")
    _NO_LIMIT = 2**62

    def __init__(self, ranks: int):
        self.ranks = ranks
        self._memory = mmap.mmap(-1, self._HEAD.size + ranks * self._STEP.size)
        self._HEAD.pack_into(self._memory, 0, 0, self._NO_LIMIT)
        for rank in range(ranks):
            self.begin_step(rank, -1)

    def request_stop(self) -> None:
        self._STEP.pack_into(self._memory, 0, 1)

    def begin_step(self, rank: int, step: int) -> None:
        self._STEP.pack_into(self._memory, self._HEAD.size + rank * self._STEP.size, step)

    def steps(self) -> list[int]:
        """The step each rank is in; -1 before the first."""
        return [self._STEP.unpack_from(self._memory, self._HEAD.size + rank * self._STEP.size)[0] for rank in range(self.ranks)]

    def may_begin(self, rank: int, step: int) -> bool:
        """Whether `rank` may begin `step`, its steps begun before counting from 0."""
        requested, last_allowed = self._HEAD.unpack_from(self._memory, 0)
        if rank == 0 and requested and last_allowed == self._NO_LIMIT:
            last_allowed = step + 1
            self._STEP.pack_into(self._memory, self._STEP.size, last_allowed)
        return step <= last_allowed
