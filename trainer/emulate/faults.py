"""Faults to order: which fault strikes which rank when, and what cannot be ordered. Nothing here loads torch."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.complaints import FieldError, choices
from trainer.emulate.orders import Fault

if TYPE_CHECKING:
    from trainer.spec import JobSpec


@dataclass(frozen=True)
class Struck:
    """A fault whose rank and step are known. `peer` is None where it concerns all of the rank's links."""

    kind: str
    rank: int
    step: int
    factor: float
    peer: int | None
    resend_seconds: float

    @property
    def words(self) -> str:
        match self.kind:
            case "slow-rank":
                return f"rank {self.rank} takes {self.factor:g} times as long from here on"
            case "slow-link":
                whose = f"to rank {self.peer}" if self.peer is not None else "to all others"
                return f"the link of rank {self.rank} {whose} is {self.factor:g} times slower from here on"
            case "lost-message":
                return f"a message of rank {self.rank} is lost, to be sent again after {self.resend_seconds * 1e3:g} ms"
            case "kill":
                return f"rank {self.rank} is killed"
            case _:
                return f"rank {self.rank} hangs"


def struck(spec: JobSpec) -> list[Struck]:
    """The job's faults, with what its seed draws for those that leave rank or step open: the same for whoever asks.

    A drawn step is never the first, so that there is something before the fault to compare with.
    """
    found = []
    for place, fault in enumerate(spec.faults):
        draw = random.Random(f"{spec.seed} {place}")
        rank, step = draw.randrange(spec.ranks), draw.randrange(min(1, spec.steps - 1), spec.steps)
        found.append(Struck(
            fault.kind, rank if fault.rank is None else fault.rank, step if fault.step is None else fault.step,
            fault.factor, fault.peer, fault.resend_ms / 1e3,
        ))
    return found


class RankFaults:
    """What of a job's faults concerns one rank. `reached` is the last step that any rank of an earlier life began."""

    def __init__(self, spec: JobSpec, rank: int, reached: int = -1):
        self._all = struck(spec)
        self._own = [fault for fault in self._all if fault.rank == rank]
        self._reached = reached

    def at(self, step: int) -> list[Struck]:
        """What strikes this rank at the start of `step`, for the first time."""
        return [fault for fault in self._own if fault.step == step and step > self._reached]

    def slowness(self, step: int) -> float:
        """How many times as long as else this rank's actions take in `step`."""
        factor = 1.0
        for fault in self._own:
            if fault.kind == "slow-rank" and step >= fault.step:
                factor *= fault.factor
        return factor

    def slow_links(self, step: int) -> list[Struck]:
        """Of the whole job: every rank has to know them, since ranks choose an algorithm by all links."""
        return [fault for fault in self._all if fault.kind == "slow-link" and step >= fault.step]


def fault_misfits(spec: JobSpec) -> list[FieldError]:
    """What cannot be ordered of this job; `faults.0.rank` is the rank of the first fault."""
    found = []
    for place, fault in enumerate(spec.faults):
        found += [FieldError(f"faults.{place}.{name}", given, message) for name, given, message in _misfits(spec, fault)]
    return found


def _misfits(spec: JobSpec, fault: Fault) -> list[tuple[str, object, str]]:
    found: list[tuple[str, object, str]] = []
    last = spec.ranks - 1
    for name in ("rank", "peer"):
        given = getattr(fault, name)
        if given is not None and given > last:
            found.append((name, given, f"the job has ranks 0 to {last}; one of these would do"))
    if fault.step is not None and fault.step >= spec.steps:
        found.append(("step", fault.step, f"the job has steps 0 to {spec.steps - 1}; one of these would do"))
    if fault.peer is not None and fault.kind != "slow-link":
        found.append(("peer", fault.peer, "only a link has two ends; without a peer it would do"))
    if fault.peer is not None and fault.peer == fault.rank:
        others = [rank for rank in range(min(spec.ranks, 16)) if rank != fault.rank]
        would_do = choices(others) if others else "none, in a job of one rank,"
        found.append(("peer", fault.peer, f"a rank has no link to itself; {would_do} would do"))
    if fault.kind == "slow-link" and spec.links.kind != "modelled":
        found.append(("kind", fault.kind, "real links cannot be slowed; links.kind 'modelled' would do"))
    if fault.kind == "lost-message" and spec.grid.pp == 1:
        found.append(("kind", fault.kind,
                      "only messages between the stages of a pipeline can be lost; 'slow-rank' would do, or a grid.pp of 2"))
    if fault.kind in ("lost-message", "kill", "hang") and spec.device != "cpu":
        found.append(("kind", fault.kind, "this is for CPU ranks; the device 'cpu' would do, or 'slow-rank'"))
    return found
