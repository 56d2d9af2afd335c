"""Every algorithm's plan brings the right contributions to the right ranks, and moves what its formula says."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from math import ceil, log2
from pathlib import Path

import pytest

from trainer.collectives.plans import ALGORITHMS, ROOTED, plan_of
from trainer.collectives.plans.plan import Plan, cut

RANKS = range(1, 18)
EVERY = [(collective, algorithm) for collective, algorithms in ALGORITHMS.items() for algorithm in algorithms]
VECTORS = json.loads((Path(__file__).parent / "vectors" / "ring_allreduce_4.json").read_text())

State = list[dict[int, frozenset[int]]]


def end_of(plan: Plan, root: int = 0) -> State:
    """What each rank has to have in the end; it may have more."""
    ranks, everyone = range(plan.ranks), frozenset(range(plan.ranks))
    match plan.collective:
        case "all_reduce":
            return [dict.fromkeys(ranks, everyone) for _ in ranks]
        case "all_gather":
            return [{chunk: frozenset([chunk]) for chunk in ranks} for _ in ranks]
        case "reduce_scatter":
            return [{rank: everyone} for rank in ranks]
        case "all_to_all":
            return [{source * plan.ranks + rank: frozenset([source]) for source in ranks} for rank in ranks]
        case "broadcast":
            return [dict.fromkeys(ranks, frozenset([root])) for _ in ranks]
        case _:
            return [dict.fromkeys(ranks, everyone) if rank == root else {} for rank in ranks]


@pytest.mark.parametrize(("collective", "algorithm"), [pair for pair in EVERY if pair[0] != "barrier"])
@pytest.mark.parametrize("ranks", RANKS)
def test_everything_ends_where_it_should(collective: str, algorithm: str, ranks: int) -> None:
    for root in range(ranks if collective in ROOTED else 1):
        plan = plan_of(collective, algorithm, ranks, root)
        *_, last = [plan.start(root), *plan.states(plan.start(root))]
        for has, should in zip(last, end_of(plan, root), strict=True):
            assert {chunk: has[chunk] for chunk in should} == should


@pytest.mark.parametrize("algorithm", ALGORITHMS["barrier"])
@pytest.mark.parametrize("ranks", RANKS)
def test_nobody_leaves_a_barrier_before_all_have_come(algorithm: str, ranks: int) -> None:
    known = [{rank} for rank in range(ranks)]
    for moves in plan_of("barrier", algorithm, ranks).steps:
        before = [set(has) for has in known]
        for move in moves:
            known[move.target] |= before[move.source]
    assert all(has == set(range(ranks)) for has in known)


@pytest.mark.parametrize(("collective", "algorithm"), EVERY)
@pytest.mark.parametrize("ranks", RANKS)
def test_a_rank_sends_and_receives_at_most_once_a_step_and_never_to_itself(collective: str, algorithm: str, ranks: int) -> None:
    plan = plan_of(collective, algorithm, ranks)
    assert len(plan.turns) == ranks  # which finds a second send or receive
    assert all(move.source != move.target and move.chunks for moves in plan.steps for move in moves)


def test_the_ring_does_what_the_table_says_after_every_step() -> None:
    plan = plan_of("all_reduce", "ring", 4)
    table = VECTORS["reduce_scatter"] + VECTORS["all_gather"]
    nodes = VECTORS["nodes"]
    assert len(plan.steps) == len(table)
    for moves, state, row in zip(plan.steps, plan.states(plan.start()), table, strict=True):
        assert {nodes[move.source]: move.chunks[0] for move in moves} == row["sends"]
        letters = [["".join(sorted("abcd"[rank] for rank in has[chunk])) for chunk in range(4)] for has in state]
        assert dict(zip(nodes, letters, strict=True)) == row["after"]


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather() -> None:
    """The ring's first half leaves the sums one chunk further along than a ReduceScatter; else the two are one."""
    whole, half = plan_of("all_reduce", "ring", 5), plan_of("reduce_scatter", "ring", 5)
    gather = plan_of("all_gather", "ring", 5)
    back = tuple(tuple(move._replace(chunks=((move.chunks[0] - 1) % 5,)) for move in moves) for moves in whole.steps)
    assert back == half.steps + gather.steps


@pytest.mark.parametrize("ranks", range(2, 18))
def test_ring_traffic_is_the_formulas(ranks: int) -> None:
    size = 12 * ranks
    traffic = plan_of("all_reduce", "ring", ranks).traffic([12] * ranks)
    assert traffic == Counter({(rank, (rank + 1) % ranks): 2 * size * (ranks - 1) // ranks for rank in range(ranks)})
    assert traffic.total() == 2 * size * (ranks - 1)


def test_ring_traffic_of_a_large_model() -> None:
    example = VECTORS["traffic"]["example"]
    size, nodes = example["M_GB"], example["N"]
    plan = plan_of("all_reduce", "ring", nodes)
    sizes = [size * 10**9 // nodes] * nodes
    assert plan.traffic(sizes).total() == example["ring_total_GB"] * 10**9


@pytest.mark.parametrize(("collective", "algorithm", "steps"), [
    ("all_reduce", "ring", lambda n: 2 * (n - 1)),
    ("all_reduce", "tree", lambda n: 2 * ceil(log2(n))),
    ("all_gather", "ring", lambda n: n - 1),
    ("all_gather", "bruck", lambda n: ceil(log2(n))),
    ("all_gather", "pat", lambda n: ceil(log2(n))),
    ("reduce_scatter", "ring", lambda n: n - 1),
    ("reduce_scatter", "pat", lambda n: ceil(log2(n))),
    ("all_to_all", "ring", lambda n: n - 1),
    ("all_to_all", "bruck", lambda n: ceil(log2(n))),
    ("broadcast", "tree", lambda n: ceil(log2(n))),
    ("reduce", "tree", lambda n: ceil(log2(n))),
    ("barrier", "recursive-doubling", lambda n: ceil(log2(n))),
])
def test_as_many_steps_as_the_textbook_says(collective: str, algorithm: str, steps) -> None:
    for ranks in range(2, 40):
        assert len(plan_of(collective, algorithm, ranks).steps) == steps(ranks)


@pytest.mark.parametrize(("algorithm", "steps"), [("recursive-doubling", 1), ("halving-doubling", 2)])
def test_doubling_takes_a_step_or_two_more_where_ranks_are_no_power_of_two(algorithm: str, steps: int) -> None:
    for ranks in range(2, 40):
        power = 1 << (ranks.bit_length() - 1)
        folds = 0 if power == ranks else 2 * steps
        assert len(plan_of("all_reduce", algorithm, ranks).steps) == steps * int(log2(power)) + folds


def test_halving_doubling_sends_a_half_then_a_quarter() -> None:
    plan = plan_of("all_reduce", "halving-doubling", 8)
    assert [len(turn.send.chunks) for turn in plan.turns[3] if turn.send] == [4, 2, 1, 1, 2, 4]


def test_pats_farthest_hop_carries_a_single_chunk() -> None:
    plan = plan_of("all_gather", "pat", 9)
    assert [((turn.send.target - 2) % 9, len(turn.send.chunks)) for turn in plan.turns[2] if turn.send] == [
        (8, 1), (4, 1), (2, 2), (1, 4)]
    for ranks in range(2, 18):
        sent = plan_of("all_gather", "pat", ranks).traffic([1] * ranks)
        assert sent.total() == ranks * (ranks - 1), "nothing is sent twice"


@pytest.mark.parametrize("count", [0, 1, 6, 7, 8, 1000])
def test_chunks_differ_by_one_element_at_most(count: int) -> None:
    bounds = cut(count, 7)
    sizes = [end - begin for begin, end in pairwise(bounds)]
    assert (bounds[0], bounds[-1], len(sizes)) == (0, count, 7)
    assert max(sizes) - min(sizes) <= 1


def test_a_plan_that_sends_what_it_has_not_or_counts_twice_is_found() -> None:
    plan = plan_of("all_gather", "ring", 3)
    with pytest.raises(ValueError, match="rank 0 has no chunk 0 to send to rank 1"):
        list(plan.states([{}, {1: frozenset([1])}, {2: frozenset([2])}]))
    plan = plan_of("all_reduce", "ring", 3)
    with pytest.raises(ValueError, match=r"would count ranks \[0\] twice"):
        list(plan.states([dict.fromkeys(range(3), frozenset([0]))] * 3))
