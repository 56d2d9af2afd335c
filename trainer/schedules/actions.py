"""What one rank of a pipeline does in a step: a list of actions, in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Do(StrEnum):
    """The four things that can be done with one micro-batch in one stage."""

    FORWARD = "F"
    BACKWARD = "B"  # both halves at once
    BACKWARD_INPUT = "I"  # the half that the previous stage waits for
    BACKWARD_WEIGHT = "W"  # the half that nobody waits for before the optimizer


DOWN, UP = "↓", "↑"


@dataclass(frozen=True, order=True)
class Action:
    do: Do
    stage: int
    micro_batch: int
    with_next: bool = field(default=False, compare=False)  # meant to run side by side with the action that follows
    way: str = field(default="", compare=False)  # DOWN or UP the ranks, where micro-batches go both ways

    def __str__(self) -> str:
        return f"{self.do.value}{self.micro_batch}{self.way}"


# For each rank of the pipeline, its actions in order. An action carries the number of its stage in the whole
# model, and which rank holds a stage is told by where its actions are.
Schedule = list[list[Action]]


def forward(stage: int, micro_batch: int) -> Action:
    return Action(Do.FORWARD, stage, micro_batch)


def backward(stage: int, micro_batch: int) -> Action:
    return Action(Do.BACKWARD, stage, micro_batch)


def needs(action: Action, stages: int) -> tuple[Do, int] | None:
    """What must be done with the same micro-batch, and in which stage, before `action` can start.

    A need for Do.BACKWARD is met by Do.BACKWARD_INPUT as well: either gives the gradient that is handed on.
    """
    match action.do:
        case Do.FORWARD:
            return (Do.FORWARD, action.stage - 1) if action.stage else None
        case Do.BACKWARD | Do.BACKWARD_INPUT:
            last = action.stage == stages - 1
            return (Do.FORWARD, action.stage) if last else (Do.BACKWARD, action.stage + 1)
        case Do.BACKWARD_WEIGHT:
            return (Do.BACKWARD_INPUT, action.stage)


def homes(schedule: Schedule) -> dict[tuple[int, int], int]:
    """The rank that does each micro-batch in each stage: by (stage, micro-batch)."""
    return {(action.stage, action.micro_batch): rank for rank, actions in enumerate(schedule) for action in actions}
