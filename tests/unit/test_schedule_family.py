"""Schedules of several stages a rank, and of split backwards: torch's are the oracle, papers give the bounds."""

from __future__ import annotations

import pytest
from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops
from torch.distributed.pipelining.schedules import OVERLAP_F_B, _get_1f1b_rank_ops

from trainer.schedules import split_backward
from trainer.schedules.actions import Action, Do, Schedule, homes
from trainer.schedules.csv_text import from_csv
from trainer.schedules.dualpipe import dualpipe
from trainer.schedules.family import SCHEDULES
from trainer.schedules.simulate import simulate
from trainer.schedules.validate import ScheduleError, validate

EQUAL = {Do.FORWARD: 1.0, Do.BACKWARD: 2.0, Do.BACKWARD_INPUT: 1.0, Do.BACKWARD_WEIGHT: 1.0}
TORCH = {"interleaved": "Interleaved1F1B", "breadth-first": "LoopedBFS", "interleaved-zb": "InterleavedZeroBubble",
         "zb-v": "ZBVZeroBubble", "dualpipe-v": "DualPipeV"}


def shapes(name: str) -> list[tuple[int, int, int]]:
    """Ranks, micro-batches and chunks that a schedule allows."""
    family = SCHEDULES[name]
    return [
        (p, m, v)
        for p in (1, 2, 3, 4, 6, 8)
        for m in (1, 2, 3, 5, 8, 12, 16, 24)
        for v in sorted({family.fewest_chunks, min(3, family.most_chunks)})
        if not (family.in_rounds and m % p) and m >= family.least_a_rank * p and p % family.ways == m % family.ways == 0
    ]


def cells(schedule: Schedule) -> list[list[str]]:
    return [[f"{a.stage}{a.do.value}{a.micro_batch}" for a in actions] for actions in schedule]


def torchs(name: str, ranks: int, micro_batches: int, chunks: int) -> list[list[str]]:
    return [
        [str(part) for action in actions if action is not None for part in (action.sub_actions or [action])]
        for actions in get_schedule_ops(TORCH[name], ranks, micro_batches, chunks)
    ]


@pytest.mark.parametrize("name", TORCH)
def test_the_order_is_torchs(name: str) -> None:
    for p, m, v in shapes(name):
        if p > 1 and m < 16:
            assert cells(SCHEDULES[name].make(p, m, v)) == torchs(name, p, m, v), (p, m, v)


def test_zb_h1_is_torchs_zero_bubble_of_one_stage_a_rank() -> None:
    for p, m in ((2, 2), (4, 8), (8, 32)):
        for rank, actions in enumerate(SCHEDULES["zb-h1"].make(p, m, 1)):
            ahead = p - 1 - rank
            theirs = _get_1f1b_rank_ops(1, p, ahead, m - ahead, ahead, rank, lambda _, r=rank: r, lambda _, r=rank: r,
                                        num_1f1b_microbatches=rank, enable_zero_bubble=True)
            assert cells([actions]) == [[str(action) for action in theirs if action is not None]]


@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_can_be_run_and_holds_no_more_than_its_bound(name: str) -> None:
    family = SCHEDULES[name]
    assert shapes(name)
    for p, m, v in shapes(name):
        schedule, most = family.make(p, m, v), [family.held(rank, p, m, v) for rank in range(p)]
        validate(schedule, p * v, m, most, family.ways)
        validate(split_backward(schedule), p * v, m, most, family.ways)
        peak = simulate(schedule, EQUAL).peak_held
        if name == "zb-v" and m < 2 * p - 1:  # too few to fill every rank
            assert max(peak) <= max(most), (p, m, v)
        else:
            assert peak == most, (p, m, v)


@pytest.mark.parametrize(("name", "chunks", "peak"), [
    ("zb-h1", 1, [4, 4, 4, 4]),  # 1F1B's 4 3 2 1 and the weights put off: nowhere more than 1F1B's first
    ("interleaved", 2, [11, 9, 7, 5]),  # (v−1)p + 2(p−1−rank) + 1 halves
    ("breadth-first", 2, [16, 16, 16, 16]),
    ("interleaved-zb", 2, [8, 8, 8, 8]),
    ("zb-v", 2, [8, 8, 8, 8]),  # halves: as much as four of 1F1B's
    ("dualpipe-v", 2, [9, 9, 9, 9]),
    ("dualpipe", 1, [5, 5, 5, 5]),
])
def test_activations_held_by_four_ranks_of_eight_micro_batches(name: str, chunks: int, peak: list[int]) -> None:
    assert simulate(SCHEDULES[name].make(4, 8, chunks), EQUAL).peak_held == peak


def test_a_v_and_a_loop_lay_out_stages() -> None:
    def places(name: str, ranks: int, micro_batches: int, chunks: int, of: int) -> list[int]:
        """Where micro-batch `of` is, stage after stage."""
        found = homes(SCHEDULES[name].make(ranks, micro_batches, chunks))
        return [found[stage, of] for stage in range(ranks * chunks)]

    assert places("interleaved", 2, 2, 3, of=1) == [0, 1, 0, 1, 0, 1]
    assert places("zb-v", 3, 5, 2, of=4) == [0, 1, 2, 2, 1, 0]
    assert [places("dualpipe", 4, 8, 1, of=m) for m in (3, 4)] == [[0, 1, 2, 3], [3, 2, 1, 0]]


@pytest.mark.parametrize("ranks", [2, 4, 6, 8])
def test_dualpipe_has_two_copies_and_ends_mirror_each_other(ranks: int) -> None:
    for m in (2 * ranks, 2 * ranks + 2, 4 * ranks):
        schedule = dualpipe(ranks, m)
        for rank, actions in enumerate(schedule):
            assert {action.stage for action in actions} == {rank, ranks - 1 - rank}
            mirrored = [Action(a.do, a.stage, (a.micro_batch + m // 2) % m) for a in schedule[ranks - 1 - rank]]
            assert actions == mirrored
            assert {(a.way, a.stage == rank, a.micro_batch < m // 2) for a in actions} == {("↓", True, True), ("↑", False, False)}
        with pytest.raises(ScheduleError, match=f"F{m // 2}↑: stage {ranks // 2 - 1} lives on rank {ranks // 2 - 1}"):
            validate(schedule, ranks, m)


def test_dualpipe_v_is_dualpipes_nearer_half() -> None:
    whole, folded = dualpipe(8, 20), SCHEDULES["dualpipe-v"].make(4, 10, 2)
    assert [[(a.do, a.with_next) for a in actions] for actions in whole[:4]] == [
        [(a.do, a.with_next) for a in actions] for actions in folded]


def test_a_rank_that_holds_too_much_is_named_with_the_action() -> None:
    with pytest.raises(ScheduleError) as error:
        validate(SCHEDULES["gpipe"].make(2, 3, 1), 2, 3, held=[2, 1])
    assert str(error.value) == "rank 0, row 2, F2: the rank holds 3 activations, and 2 at most would do"


@pytest.mark.parametrize("name", TORCH)
def test_torchs_own_text_is_read(name: str) -> None:
    text = "\n".join(",".join("" if action is None else str(action) for action in actions)
                     for actions in get_schedule_ops(TORCH[name], 4, 8, 2, add_spacing=name in ("interleaved", "breadth-first")))
    assert from_csv(text) == SCHEDULES[name].make(4, 8, 2)
    assert from_csv(text.replace("\n", "\r\n") + "\r\n") == from_csv(text)


def test_what_torch_overlaps_is_marked() -> None:
    theirs = get_schedule_ops("DualPipeV", 4, 10)
    pairs = [[str(action.sub_actions[0]) for action in actions if action is not None and action.computation_type is OVERLAP_F_B]
             for actions in theirs]
    for schedule in (SCHEDULES["dualpipe-v"].make(4, 10, 2), from_csv("\n".join(",".join(map(str, row)) for row in theirs))):
        assert cells([[a for a in actions if a.with_next] for actions in schedule]) == pairs


@pytest.mark.parametrize(("text", "message"), [
    ("0F0,0B0\n1F0,1B", "rank 1, cell 1, '1B': an action is stage, F, B, I or W, and micro-batch: 2F0 would do"),
    ("0F0,0SEND_F0", "rank 0, cell 1, '0SEND_F0': an action is"),
    ("(0F0;0X0)OVERLAP_F_B", "rank 0, cell 0, '(0F0;0X0)OVERLAP_F_B': an action is"),
    ("0F" + "9" * 50, "rank 0, cell 0"),
])
def test_a_cell_that_is_no_action_is_named(text: str, message: str) -> None:
    with pytest.raises(ScheduleError) as error:
        from_csv(text)
    assert message in str(error.value)
