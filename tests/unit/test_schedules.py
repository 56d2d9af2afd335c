"""Schedules are lists; what they promise can be counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainer.schedules import split_backward
from trainer.schedules.actions import Action, Do, Schedule, backward, forward
from trainer.schedules.family import SCHEDULES
from trainer.schedules.simulate import Meeting, Simulation, simulate
from trainer.schedules.validate import ScheduleError, validate

SLOTS = json.loads((Path(__file__).parent / "vectors" / "pipeline_slots_4x4.json").read_text())
ONE_EACH = dict.fromkeys(Do, 1.0)
TEXTBOOK = {Do.FORWARD: 1.0, Do.BACKWARD: 2.0, Do.BACKWARD_INPUT: 1.0, Do.BACKWARD_WEIGHT: 1.0}
SHAPES = [(1, 1), (1, 5), (2, 1), (3, 7), (4, 8), (4, 2), (8, 32)]


def made(name: str, stages: int, micro_batches: int) -> Schedule:
    return SCHEDULES[name].make(stages, micro_batches, 1)


def texts(schedule: Schedule) -> list[str]:
    return [" ".join(map(str, actions)) for actions in schedule]


@pytest.mark.parametrize(("stages", "micro_batches"), SHAPES)
@pytest.mark.parametrize("name", ["naive", "gpipe", "1f1b", "zb-h1"])
def test_every_schedule_can_be_run_whole_and_split(name: str, stages: int, micro_batches: int) -> None:
    schedule = made(name, stages, micro_batches)
    validate(schedule, stages, micro_batches)
    validate(split_backward(schedule), stages, micro_batches)


def test_orders_as_in_the_books() -> None:
    assert texts(made("naive", 2, 2)) == ["F0 B0 F1 B1"] * 2
    assert texts(made("gpipe", 2, 3)) == ["F0 F1 F2 B0 B1 B2"] * 2
    assert texts(made("1f1b", 3, 4)) == [
        "F0 F1 F2 B0 F3 B1 B2 B3",
        "F0 F1 B0 F2 B1 F3 B2 B3",
        "F0 B0 F1 B1 F2 B2 F3 B3",
    ]
    assert texts(split_backward(made("1f1b", 2, 2))) == ["F0 F1 I0 W0 I1 W1", "F0 I0 W0 F1 I1 W1"]


@pytest.mark.parametrize(("name", "peak"), [("naive", [1, 1, 1, 1]), ("gpipe", [8, 8, 8, 8]), ("1f1b", [4, 3, 2, 1]),
                                            ("zb-h1", [4, 4, 4, 4])])
def test_micro_batches_held_at_once(name: str, peak: list[int]) -> None:
    assert simulate(made(name, 4, 8), TEXTBOOK).peak_held == peak


def test_the_eleven_slots_of_four_stages_and_four_micro_batches() -> None:
    """Forwards and backwards side by side, a slot each: who does what in each slot, and the share that is active."""
    ran = simulate(made("gpipe", 4, 4), ONE_EACH, side_by_side=True)
    assert ran.makespan == len(SLOTS["slots"]) == 11
    for slot in SLOTS["slots"]:
        now = [item for item in ran.timed if item.start == slot["step"] - 1]
        for field, do in (("forward", Do.FORWARD), ("backward", Do.BACKWARD)):
            done = {SLOTS["stages"][item.rank]: item.action.micro_batch + 1 for item in now if item.action.do is do}
            assert done == slot[field], f"{field} in slot {slot['step']}"
        assert 100 * len({item.rank for item in now}) / 4 == slot["active_percent"]


def test_a_hand_off_delays_each_stage_once() -> None:
    def makespan(hand_off: float) -> float:
        return simulate(made("gpipe", 4, 8), TEXTBOOK, hand_off).makespan

    assert makespan(0.0) == 3 * 11
    assert makespan(0.25) == pytest.approx(3 * 11 + 6 * 0.25), "three hops forward and three back are not hidden"


def test_a_simulation_says_when_everything_happens() -> None:
    ran: Simulation = simulate(made("gpipe", 2, 1), TEXTBOOK)
    assert [(item.rank, str(item.action), item.start, item.end) for item in ran.timed] == [
        (0, "F0", 0, 1), (1, "F0", 1, 2), (1, "B0", 2, 4), (0, "B0", 4, 6),
    ]
    assert (ran.busy, ran.bubble_share) == (6, 0.5)


def broken(name: str) -> Schedule:
    fine = made("gpipe", 2, 2)
    match name:
        case "twice":
            return [[*fine[0], forward(0, 1)], fine[1]]
        case "no such stage":
            return [[*fine[0], forward(2, 1)], fine[1]]
        case "no such micro-batch":
            return [[forward(0, 2), *fine[0]], fine[1]]
        case "backward first":
            return [[backward(0, 0), *fine[0][:2], backward(0, 1)], fine[1]]
        case "two homes":
            return [fine[0][:3], [*fine[1], backward(0, 1)]]
        case "weights first":
            return [fine[0], [*fine[1][:2], Action(Do.BACKWARD_WEIGHT, 1, 0)]]
        case "whole and half":
            return [[*fine[0], Action(Do.BACKWARD_INPUT, 0, 1)], fine[1]]
        case "missing forward":
            return [fine[0], []]
        case "missing backward":
            return [fine[0][:3], fine[1]]
        case _:
            # Stage 0 wants micro-batch 0 back before it starts 1; stage 1 wants 1 before it gives 0 back.
            return [[forward(0, 0), backward(0, 0), forward(0, 1), backward(0, 1)], fine[1]]


@pytest.mark.parametrize(("name", "message"), [
    ("twice", "rank 0, row 4, F1: stage 0 does it already at rank 0, row 1, F1"),
    ("no such stage", "rank 0, row 4, F1: there is no stage 2, only 0 to 1"),
    ("no such micro-batch", "rank 0, row 0, F2: there is no micro-batch 2, only 0 to 1"),
    ("backward first", "rank 0, row 0, B0: its forward has to come before"),
    ("two homes", "rank 1, row 4, B1: stage 0 lives on rank 0"),
    ("weights first", "rank 1, row 2, W0: its input gradient (I0) has to come before"),
    ("whole and half", "rank 0, row 4, I1: a backward is either whole (B) or in two halves (I and W), not both"),
    ("missing forward", "F0 of stage 1 is missing"),
    ("missing backward", "the backward of micro-batch 1 in stage 0 is missing or half"),
    ("deadlock", "each waits for another: rank 0, row 1, B0 of stage 0; rank 1, row 1, F1 of stage 1"),
])
def test_a_schedule_that_cannot_be_run_says_where(name: str, message: str) -> None:
    with pytest.raises(ScheduleError) as error:
        validate(broken(name), 2, 2)
    assert str(error.value) == message


@pytest.mark.parametrize(("beside", "ends"), [(False, [8, 8]), (True, [6, 7])])
def test_ranks_that_meet_are_over_together_or_go_on_beside_it(beside: bool, ends: list[float]) -> None:
    """Two ranks, one of which begins 2 later, do something for 3 together: from the last end on, or from the last begin."""
    def meets(rank: int, action: Action) -> Meeting:
        return Meeting("both", 2, 3.0, beside)

    step = simulate([[forward(0, 0)], [forward(0, 1)]], ONE_EACH | {Do.FORWARD: 3.0}, meets=meets, begin=[0.0, 2.0],
                    slowness=[1.0, 1.0] if not beside else [2.0, 5 / 3])
    assert [timed.end for timed in sorted(step.timed, key=lambda timed: timed.rank)] == ends
