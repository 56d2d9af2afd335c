"""How a run ended and why, in words, from how its ranks ended. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboard.runs.models import State
from trainer.ends import FINISHED, Exit, cause_of


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


def judge(exits: list[Exit], stop_reason: str, restarts: int = 0) -> Verdict:
    """The verdict on a run whose ranks have all ended, in the order of their ends.

    `stop_reason` says why the run was stopped; empty when nobody wanted that. `restarts` is how often it had begun again.
    """
    cause = cause_of(exits)
    often = "once" if restarts == 1 else f"{restarts} times"
    if cause is not None:
        words = f"{cause.words} It had begun again {often} before." if restarts else cause.words
        return Verdict(State.FAILED, words, cause.rank, cause.exit_code, cause.signal)
    if all(end.code == FINISHED for end in exits):
        return Verdict(State.FINISHED, f"It had begun again {often}." if restarts else "")
    return Verdict(State.STOPPED, stop_reason)


def steps_done(steps: list[int]) -> int:
    """How many steps every rank has done, from the step that each is in; past its last one a rank names the next."""
    return max(0, min(steps, default=0))
