"""Whether a schedule can be run: every action once, in an order that makes sense, and no deadlock."""

from __future__ import annotations

from collections.abc import Sequence

from trainer.schedules.actions import Action, Do, Schedule
from trainer.schedules.simulate import Stuck, simulate


class ScheduleError(ValueError):
    """The schedule cannot be run; says at which rank, row and action."""


def validate(
    schedule: Schedule, stages: int, micro_batches: int, held: Sequence[int] | None = None, copies: int = 1
) -> None:
    """ScheduleError unless the schedule does all `micro_batches` in all `stages`.

    `held[rank]` is the most activations that a rank may hold at once, each of one micro-batch in one stage.
    `copies` of each stage may live on different ranks (two in DualPipe), each with micro-batches of its own.
    """
    seen: dict[Action, str] = {}
    homes: dict[int, list[int]] = {}
    for rank, actions in enumerate(schedule):
        holding = 0
        for row, action in enumerate(actions):
            place = f"rank {rank}, row {row}, {action}"
            _check_place(action, place, stages, micro_batches)
            if action in seen:
                raise ScheduleError(f"{place}: stage {action.stage} does it already at {seen[action]}")
            _check_home(action, place, rank, homes, copies)
            _check_before(action, place, seen)
            seen[action] = place
            holding += _HOLDS.get(action.do, 0)
            if held is not None and holding > held[rank]:
                raise ScheduleError(f"{place}: the rank holds {holding} activations, and {held[rank]} at most would do")
    _check_whole(seen, stages, micro_batches)
    try:
        simulate(schedule, dict.fromkeys(Do, 1.0))
    except Stuck as stuck:
        raise ScheduleError(str(stuck)) from None


_HOLDS = {Do.FORWARD: 1, Do.BACKWARD: -1, Do.BACKWARD_WEIGHT: -1}


def _check_home(action: Action, place: str, rank: int, homes: dict[int, list[int]], copies: int) -> None:
    found = homes.setdefault(action.stage, [])
    if rank not in found:
        if len(found) == copies:
            raise ScheduleError(f"{place}: stage {action.stage} lives on rank {' and '.join(map(str, found))}")
        found.append(rank)


def _check_place(action: Action, place: str, stages: int, micro_batches: int) -> None:
    if not 0 <= action.stage < stages:
        raise ScheduleError(f"{place}: there is no stage {action.stage}, only 0 to {stages - 1}")
    if not 0 <= action.micro_batch < micro_batches:
        raise ScheduleError(f"{place}: there is no micro-batch {action.micro_batch}, only 0 to {micro_batches - 1}")


def _check_before(action: Action, place: str, seen: dict[Action, str]) -> None:
    """What the same rank has to have done before, and must not have done."""
    def done(do: Do) -> bool:
        return Action(do, action.stage, action.micro_batch) in seen

    if action.do in (Do.BACKWARD, Do.BACKWARD_INPUT) and not done(Do.FORWARD):
        raise ScheduleError(f"{place}: its forward has to come before")
    if action.do is Do.BACKWARD_WEIGHT and not done(Do.BACKWARD_INPUT):
        raise ScheduleError(f"{place}: its input gradient (I{action.micro_batch}) has to come before")
    if (action.do is Do.BACKWARD_INPUT and done(Do.BACKWARD)) or (action.do is Do.BACKWARD and done(Do.BACKWARD_INPUT)):
        raise ScheduleError(f"{place}: a backward is either whole (B) or in two halves (I and W), not both")


def _check_whole(seen: dict[Action, str], stages: int, micro_batches: int) -> None:
    for stage in range(stages):
        for m in range(micro_batches):
            done = {do for do in Do if Action(do, stage, m) in seen}
            if Do.FORWARD not in done:
                raise ScheduleError(f"F{m} of stage {stage} is missing")
            if Do.BACKWARD not in done and not {Do.BACKWARD_INPUT, Do.BACKWARD_WEIGHT} <= done:
                raise ScheduleError(f"the backward of micro-batch {m} in stage {stage} is missing or half")
