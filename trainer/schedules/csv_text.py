"""A schedule of one's own, in the text that torch's pipelining reads and writes.

A row for each rank, a cell for each action: stage, what is done, micro-batch.

    0F0,0F1,,,0I0,0W0,0I1,0W1
    ,1F0,1B0,1F1,1B1

An empty cell is a moment without work and says nothing about the order. (0F3;7B1)OVERLAP_F_B is two actions side
by side. Sends and receives follow from the order and are not written.
"""

from __future__ import annotations

import re

from trainer.schedules.actions import Action, Do, Schedule
from trainer.schedules.validate import ScheduleError

_ACTION = re.compile(r"([0-9]{1,4})(F|B|I|W)([0-9]{1,4})")
_PAIR = re.compile(r"\((.+);(.+)\)OVERLAP_F_B")


def from_csv(text: str) -> Schedule:
    """ScheduleError for a cell that is no action; whether the actions make a schedule is for `validate`."""
    rows = text.strip().splitlines()
    return [
        [action for number, cell in enumerate(row.split(",")) if cell.strip() for action in _cell(rank, number, cell.strip())]
        for rank, row in enumerate(rows)
    ]


def _cell(rank: int, number: int, cell: str) -> list[Action]:
    place = f"rank {rank}, cell {number}, {cell[:40]!r}"
    pair = _PAIR.fullmatch(cell)
    if pair is None:
        return [_action(place, cell)]
    first, second = (_action(place, part.strip()) for part in pair.groups())
    return [Action(first.do, first.stage, first.micro_batch, with_next=True), second]


def _action(place: str, text: str) -> Action:
    found = _ACTION.fullmatch(text)
    if found is None:
        raise ScheduleError(f"{place}: an action is stage, F, B, I or W, and micro-batch: 2F0 would do")
    stage, do, micro_batch = found.groups()
    return Action(Do(do), int(stage), int(micro_batch))
