"""ZB-V (Qi et al., "Pipeline Parallelism with Controllable Memory", 2024): stages in the shape of a V.

    rank 0 holds stages 0 and 7        0     7
    rank 1 holds stages 1 and 6         1   6
    rank 2 holds stages 2 and 5          2 5
    rank 3 holds stages 3 and 4          3 4

The last stage is on the rank of the first: its backward begins where its forward ends, and the way back starts
while the way there is still under way. With gradients of the weights put off, a rank that has begun never waits
until it is done, if forward and both halves of the backward last equally long. It holds what 1F1B's first stage does.
"""

from __future__ import annotations

from trainer.schedules.actions import Action, Do, Schedule

F, I, W = Do.FORWARD, Do.BACKWARD_INPUT, Do.BACKWARD_WEIGHT  # noqa: E741


def zb_v(ranks: int, micro_batches: int) -> Schedule:
    return [_rank(rank, ranks, micro_batches) for rank in range(ranks)]


def _rank(rank: int, ranks: int, micro_batches: int) -> list[Action]:
    """The phases are those of at least 2·ranks − 1 micro-batches; what is beyond those that there are is left out."""
    down, up = rank, 2 * ranks - 1 - rank
    behind = ranks - rank  # this rank and those behind it
    all_of_them = max(2 * ranks - 1, micro_batches)
    started = 2 * behind - 1 + rank  # before the steady phase, on the way down
    return _in_turn([
        (2 * behind - 1, [(F, down)]),
        (rank, [(F, up), (F, down)]),
        (behind, [(F, up), (I, up), (W, up)]),
        (all_of_them - started, [(F, down), (I, down), (W, down), (F, up), (I, up), (W, up)]),
        (started - ranks, [(I, down), (W, down), (F, up), (I, up), (W, up)]),
        (rank, [(I, down), (I, up)]),
        (behind, [(I, down), (W, down)]),
        (rank, [(W, up)]),
        (rank, [(W, down)]),
    ], micro_batches)


def _in_turn(phases: list[tuple[int, list[tuple[Do, int]]]], micro_batches: int) -> list[Action]:
    """Each phase so many times; every (do, stage) takes the micro-batches in their order, and ends after the last."""
    taken: dict[tuple[Do, int], int] = {}
    actions = []
    for times, parts in phases:
        for do, stage in parts * times:
            m = taken[do, stage] = taken.get((do, stage), -1) + 1
            if m < micro_batches:
                actions.append(Action(do, stage, m))
    return actions


def held(ranks: int, micro_batches: int) -> int:
    """The most activations of thin stages that a rank holds: as much as 1F1B's first stage, in halves (Qi et al., 2024)."""
    return 2 * min(micro_batches, ranks)
