"""How a run ended and why, in words, from how its ranks ended. Pure."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import Any

from dashboard.runs.models import State

FINISHED_STATUS = 0
STOPPED_STATUS = 10  # trainer.rank.main: ended early because it was asked to
TERMINATED_STATUS = 143  # the same: SIGTERM came, and it saved what it had recorded before it went


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
        return not self.by_host and self.code not in (FINISHED_STATUS, STOPPED_STATUS)


@dataclass(frozen=True)
class Verdict:
    state: str
    reason: str = ""
    rank: int | None = None  # the one at fault
    exit_code: int | None = None
    signal: str | None = None

    def failure(self, log_tail: str) -> dict[str, Any] | None:
        if self.state != State.FAILED or self.rank is None:
            return None
        return {"rank": self.rank, "exit_code": self.exit_code, "signal": self.signal, "log_tail": log_tail}


def judge(exits: list[Exit], stop_reason: str) -> Verdict:
    """The verdict on a run whose ranks have all ended, in the order of their ends.

    `stop_reason` says why the run was stopped; empty when nobody wanted that.
    """
    faults = [end for end in exits if end.is_fault]
    if faults:
        # Ranks that lost a neighbour fail too, with an error of the connection. A signal came from
        # outside, so it is the cause; among errors the first to end is.
        return _blame(next((end for end in faults if end.signal or end.code == TERMINATED_STATUS), faults[0]))
    if all(end.code == FINISHED_STATUS for end in exits):
        return Verdict(State.FINISHED)
    return Verdict(State.STOPPED, stop_reason)


def _blame(end: Exit) -> Verdict:
    when = f"in step {end.step}" if end.step >= 0 else "before its first step"
    number = signal.SIGTERM if end.code == TERMINATED_STATUS else end.signal
    if number is None:
        return Verdict(State.FAILED, f"Rank {end.rank} ended with exit code {end.code} {when}.", end.rank, end.code)
    name = signal_name(number)
    return Verdict(State.FAILED, f"Rank {end.rank} was killed by {name} {when}.", end.rank, None, name)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def steps_done(steps: list[int]) -> int:
    """How many steps every rank has done, from the step that each is in; past its last one a rank names the next."""
    return max(0, min(steps, default=0))
