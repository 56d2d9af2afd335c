"""Costs by α and β equal the textbook's formulas, and speeds are told as nccl-tests tells them."""

from __future__ import annotations

import pytest

from trainer.collectives.cost import ALL_REDUCE_SECONDS, algbw, busbw, by_cost, seconds
from trainer.collectives.plans import ALGORITHMS, plan_of
from trainer.emulate.link_classes import CLASSES, LinkClass

LINK = LinkClass("test", 2e-6, 10e9)


def everywhere(one: int, other: int) -> LinkClass:
    return LINK


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
@pytest.mark.parametrize("algorithm", ALL_REDUCE_SECONDS)
def test_a_plan_costs_what_its_formula_says(algorithm: str, ranks: int) -> None:
    size = ranks * 1_000_000
    assert seconds(plan_of("all_reduce", algorithm, ranks), size, everywhere) == pytest.approx(
        ALL_REDUCE_SECONDS[algorithm](ranks, size, LINK), rel=1e-9)


@pytest.mark.parametrize("ranks", [3, 5, 6, 7])
def test_a_rings_formula_holds_for_any_number_of_ranks(ranks: int) -> None:
    size = ranks * 1_000_000
    assert seconds(plan_of("all_reduce", "ring", ranks), size, everywhere) == pytest.approx(
        ALL_REDUCE_SECONDS["ring"](ranks, size, LINK), rel=1e-9)


def test_the_formulas_by_hand() -> None:
    """4 ranks, 8 MB, 2 µs and 10 GB/s: 8 MB take 800 µs."""
    micros = {name: formula(4, 8e6, LINK) * 1e6 for name, formula in ALL_REDUCE_SECONDS.items()}
    assert micros == pytest.approx({
        "ring": 6 * 2 + 1.5 * 800, "tree": 4 * 802, "recursive-doubling": 2 * 802, "halving-doubling": 4 * 2 + 1.5 * 800})


def test_one_slow_link_holds_up_the_whole_ring() -> None:
    slow = LinkClass("slow", 2e-6, 1e9)
    plan = plan_of("all_reduce", "ring", 4)
    found = seconds(plan, 4_000_000, lambda one, other: slow if {one, other} == {0, 1} else LINK)
    assert found == pytest.approx(6 * slow.seconds(1e6), rel=0.2)
    assert found > 4 * seconds(plan, 4_000_000, everywhere)


def test_the_quickest_of_a_small_and_of_a_large_array() -> None:
    plans = [plan_of("all_reduce", name, 8) for name in ALGORITHMS["all_reduce"]]
    assert by_cost(plans, 64, everywhere)[0][1].algorithm == "recursive-doubling"
    assert by_cost(plans, 2**30, everywhere)[0][1].algorithm == "halving-doubling"
    assert by_cost(plans, 2**30, everywhere)[-1][1].algorithm == "tree"


def test_speeds_of_a_published_log() -> None:
    """16 ranks, 8 GiB in 47,535 µs; decimal GB/s. The log's time is rounded, its speeds are not of the rounded time."""
    size, duration = 8 * 2**30, 47_535e-6
    assert algbw(size, duration) / 1e9 == pytest.approx(180.71, abs=0.01)
    assert busbw("all_reduce", 16, size, duration) / 1e9 == pytest.approx(338.82, abs=0.01)


@pytest.mark.parametrize(("collective", "share"), [
    ("all_reduce", 1.5), ("all_gather", 0.75), ("reduce_scatter", 0.75), ("all_to_all", 0.75),
    ("broadcast", 1.0), ("reduce", 1.0),
])
def test_what_the_bus_carries_of_an_array(collective: str, share: float) -> None:
    assert busbw(collective, 4, 1e9, 1.0) == share * 1e9


def test_classes_of_links() -> None:
    assert {key: (link.bytes_per_second / 1e9, link.latency_seconds * 1e6) for key, link in CLASSES.items()} == {
        "nvlink-4": (900, 5), "nvlink-5": (1800, 5), "pcie-5": (128, 1), "pcie-6": (256, 1),
        "infiniband-ndr": (50, 1), "infiniband-xdr": (100, 1), "roce-v2": (50, 2),
    }
