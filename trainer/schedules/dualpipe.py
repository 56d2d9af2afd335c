"""DualPipe (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024): micro-batches enter at both ends of the pipeline.

    rank 0  stage 0 of one copy, stage 3 of the other
    rank 1        1                    2
    rank 2        2                    1
    rank 3        3                    0

Half of the micro-batches go down through one copy of the model, half up through the other, and a rank always has
a forward of one way for the backward of the other. The first half of the micro-batches' numbers go down.
Ranks as far from either end hold the same two stages, and after their backwards average the gradients of these.
"""

from __future__ import annotations

from typing import NamedTuple

from trainer.schedules.actions import DOWN, UP, Action, Do, Schedule

F, B, I, W = Do.FORWARD, Do.BACKWARD, Do.BACKWARD_INPUT, Do.BACKWARD_WEIGHT  # noqa: E741
NEAR, FAR = 0, 1  # the way whose beginning is the nearer one, and the other


def dualpipe(ranks: int, micro_batches: int) -> Schedule:
    """For an even number of ranks and an even number of micro-batches, at least two for each rank."""
    each_way = micro_batches // 2
    schedule = []
    for rank in range(ranks):
        down, up = (rank, 0, DOWN), (ranks - 1 - rank, each_way, UP)  # stage, first micro-batch
        ways = (down, up) if rank < ranks // 2 else (up, down)
        order = two_ways(min(rank, ranks - 1 - rank), ranks // 2, each_way)
        schedule.append([Action(do, ways[way][0], ways[way][1] + m, beside, ways[way][2]) for do, way, m, beside in order])
    return schedule


def held(ranks: int) -> int:
    """The most micro-batches that a rank holds, both ways together (DeepSeek-AI, 2024: one more than ranks)."""
    return ranks + 1


def two_ways(depth: int, ranks: int, micro_batches: int) -> list[Turn]:
    """What a rank does. `depth` counts from the nearer end, `ranks` is half the way long.

    The eight phases of DeepSeek's own program.
    """
    behind = ranks - 1 - depth
    order = _Order()
    for _ in range(2 * behind):
        order.do(F, NEAR)
    for _ in range(depth + 1):
        order.do(F, NEAR)
        order.do(F, FAR)
    for _ in range(behind):
        order.do(I, FAR)
        order.do_put_off()
        order.do(F, FAR)
    for again in range(micro_batches - 2 * ranks + depth + 1):
        order.do(F, NEAR, with_next=bool(again or behind))  # where the ways meet the first two would only wait longer
        order.do(B, FAR)
        order.do(F, FAR, with_next=True)
        order.do(B, NEAR)
    for _ in range(behind):
        order.do(B, FAR)
        order.do(F, FAR, with_next=True)
        order.do(B, NEAR)
    for number in range(2 * (depth + 1)):  # the second half of these put off their weights
        order.do(B if number <= depth else I, NEAR if number % 2 else FAR)
    for _ in range(behind):
        order.do_put_off()
        order.do(I, NEAR)
    while order.put_off:
        order.do_put_off()
    return order.turns


class Turn(NamedTuple):
    do: Do
    way: int  # NEAR or FAR
    micro_batch: int
    with_next: bool = False


class _Order:
    """Each way's forwards, and its backwards, take the micro-batches in their order."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.put_off: list[tuple[int, int]] = []
        self._taken: dict[tuple[bool, int], int] = {}

    def do(self, do: Do, way: int, with_next: bool = False) -> None:
        m = self._taken.get((do is F, way), 0)
        self._taken[do is F, way] = m + 1
        self.turns.append(Turn(do, way, m, with_next))
        if do is I:
            self.put_off.append((way, m))

    def do_put_off(self) -> None:
        self.turns.append(Turn(W, *self.put_off.pop(0)))
