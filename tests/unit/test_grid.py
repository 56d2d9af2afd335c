"""Addresses and groups of ranks."""

from __future__ import annotations

import pytest

from trainer.grid import AXES, Address, Grid, averaging_axes, expert_axes, first_copy, speaks_for_its_stages
from trainer.spec import GridSpec, JobSpec, ScheduleSpec

GRID = Grid.of(GridSpec(dp=2, pp=3, tp=4))


def test_every_rank_has_its_own_address_and_back() -> None:
    addresses = [GRID.address(rank) for rank in range(GRID.ranks)]
    assert GRID.ranks == len(set(addresses)) == 24
    assert [GRID.rank(address) for address in addresses] == list(range(24))


def test_neighbours_in_rank_share_the_fastest_axis() -> None:
    assert [GRID.address(rank).tp for rank in range(5)] == [0, 1, 2, 3, 0]
    assert GRID.address(23) == Address(dp=1, pp=2, tp=3)


@pytest.mark.parametrize("axis", AXES)
def test_groups_of_an_axis_part_the_ranks_and_differ_on_it_alone(axis: str) -> None:
    groups = GRID.groups(axis)
    assert sorted(rank for group in groups for rank in group) == list(range(24))
    for group in groups:
        addresses = [GRID.address(rank) for rank in group]
        assert [getattr(address, axis) for address in addresses] == list(range(GRID.size(axis)))
        others = {tuple(getattr(a, other) for other in AXES if other != axis) for a in addresses}
        assert len(others) == 1
        assert all(GRID.group(axis, rank) == group for rank in group)


def test_two_stages_times_two_copies() -> None:
    grid = Grid.of(GridSpec(dp=2, pp=2))
    assert grid.groups("pp") == [[0, 1], [2, 3]]
    assert grid.groups("dp") == [[0, 2], [1, 3]]


@pytest.mark.parametrize("rank", [-1, 24])
def test_a_rank_outside_the_grid_is_refused(rank: int) -> None:
    with pytest.raises(ValueError, match=f"rank {rank} is outside a grid of 24 ranks"):
        GRID.address(rank)


def test_an_address_outside_the_grid_is_refused() -> None:
    with pytest.raises(ValueError, match="pp=3 is outside an axis of 3"):
        GRID.rank(Address(pp=3))


def of(schedule: str = "1f1b", **sizes: int) -> JobSpec:
    return JobSpec(grid=GridSpec(**sizes), schedule=ScheduleSpec.model_validate({"name": schedule}))


def test_places_as_far_from_either_end_have_the_same_stages() -> None:
    """Of a pipeline whose micro-batches go both ways, and of no other."""
    grid = Grid.of(GridSpec(dp=2, pp=4))
    assert grid.groups("mirror") == [[0, 3], [1, 2], [4, 7], [5, 6]]
    assert grid.groups("dp", "mirror") == [[0, 3, 4, 7], [1, 2, 5, 6]]
    both = of("dualpipe", dp=2, pp=4)
    assert (averaging_axes(both), averaging_axes(of(dp=2, pp=4)), averaging_axes(of("dualpipe", pp=4))) == (
        "dp×mirror", "dp", "mirror")
    assert (both.averaging_ranks, of(dp=2, pp=4).averaging_ranks) == (4, 2)
    assert [grid.rank(first_copy(both, grid.address(rank))) for rank in range(8)] == [0, 1, 1, 0] * 2
    assert [rank for rank in range(8) if speaks_for_its_stages(both, grid.address(rank))] == [0, 1]
    assert [rank for rank in range(8) if speaks_for_its_stages(of(dp=2, pp=4), grid.address(rank))] == [0, 1, 2, 3]


def test_experts_are_averaged_over_those_that_have_the_same() -> None:
    spec = of(dp=2, ep=2, cp=2, tp=2)
    assert (averaging_axes(spec), expert_axes(spec)) == ("dp×ep×cp", "dp×cp")
    assert [averaging_axes(of(ep=2)), expert_axes(of(ep=2))] == ["ep", ""]
    assert Grid.of(GridSpec(dp=2, ep=2, pp=2)).groups("dp", "ep") == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert spec.grid.copies == 4


def test_copies_and_parts_of_the_sequence_average_as_one() -> None:
    assert Grid.of(GridSpec(dp=2, cp=2, tp=2)).groups("dp", "cp") == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert averaging_axes(of(dp=2, cp=2, tp=2)) == "dp×cp"
    assert [averaging_axes(of(**{axis: 2})) for axis in ("dp", "cp", "tp")] == ["dp", "cp", ""]
