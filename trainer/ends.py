"""How a run's ranks ended, and which of them is the cause. Nothing here loads torch."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

FINISHED = 0
STOPPED = 10  # ended early because it was asked to
TIMED_OUT = 11  # waited for other ranks as long as the job allows
TERMINATED = 143  # what a shell says of a process that SIGTERM ended; it saved what it had recorded before it went


@dataclass(frozen=True)
class Exit:
    """One rank's end. `by_host`: a signal from the rank host came before it."""

    rank: int
    code: int | None
    signal: int | None
    step: int  # that it was in; -1 before the first
    by_host: bool

    @property
    def is_fault(self) -> bool:
        return not self.by_host and self.code not in (FINISHED, STOPPED)


@dataclass(frozen=True)
class Cause:
    """The rank that ended a run, and what became of it, in words."""

    rank: int
    words: str
    exit_code: int | None = None
    signal: str | None = None


def cause_of(exits: Sequence[Exit]) -> Cause | None:
    """What ended a run whose ranks ended in this order; None if it was no fault of theirs.

    Ranks that lost a neighbour fail too, with an error of the connection. A signal came from outside, so it is the cause;
    among errors the first to end is. Whoever waited in vain is not, but who did not come: when one rank gives up all that
    wait fail with it, and only a rank that takes part in nothing is there until the host ends it.
    """
    faults = [end for end in exits if end.is_fault]
    if not faults:
        return None
    killed = [end for end in faults if end.signal or end.code == TERMINATED]
    waited = [end for end in faults if end.code == TIMED_OUT]
    if killed or not waited:
        return _blamed((killed or faults)[0])
    first = waited[0]
    absent = [end for end in exits if end.by_host and (end.signal or end.code == TERMINATED)]
    if not absent:
        return Cause(first.rank, f"Rank {first.rank} waited in vain for other ranks until its time-out {_when(first)}, "
                                 "and so did they all.", first.code)
    names = " and ".join(f"Rank {end.rank}" for end in sorted(absent, key=lambda end: end.rank))
    return Cause(absent[0].rank, f"{names} did not come: {'it' if len(absent) == 1 else 'they'} took part in nothing more "
                                 f"{_when(absent[0])}, and rank {first.rank} waited until its time-out.")


def _blamed(end: Exit) -> Cause:
    number = signal.SIGTERM if end.code == TERMINATED else end.signal
    if number is None:
        return Cause(end.rank, f"Rank {end.rank} ended with exit code {end.code} {_when(end)}.", end.code)
    name = signal_name(number)
    return Cause(end.rank, f"Rank {end.rank} was killed by {name} {_when(end)}.", None, name)


def _when(end: Exit) -> str:
    return f"in step {end.step}" if end.step >= 0 else "before its first step"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
