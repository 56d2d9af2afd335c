"""What a collective costs by α and β, and how its speed is told. Nothing here loads torch.

The formulas are the textbook's, for N ranks, M bytes, and links that take α seconds and then β bytes a second; they
hold where all links are alike and N is a power of two (ring: any N). `seconds` plays a plan through and holds always.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import ceil, log2
from types import MappingProxyType

from trainer.collectives.plans.plan import Plan, cut
from trainer.emulate.link_classes import LinkClass

LinkOf = Callable[[int, int], LinkClass]  # between two places of the group


def chunk_bytes(plan: Plan, size_bytes: int) -> list[int]:
    """Of an array of `size_bytes` in all; an all-to-all's array is what one rank sends."""
    if plan.collective == "all_to_all":
        return [size_bytes // plan.ranks] * plan.chunks
    if plan.collective == "barrier":
        return [1] * plan.chunks
    bounds = cut(size_bytes, plan.chunks)
    return [end - begin for begin, end in pairwise(bounds)]


def seconds(plan: Plan, size_bytes: int, link_of: LinkOf) -> float:
    """From all ranks' beginning at once to the last one's end. A rank sends one message after the other, and goes on
    to its next step once what the last one brings is there."""
    sizes = chunk_bytes(plan, size_bytes)
    ready, free = [0.0] * plan.ranks, [0.0] * plan.ranks
    for moves in plan.steps:
        after = list(ready)
        for move in moves:
            link = link_of(move.source, move.target)
            size = sum(sizes[chunk] for chunk in move.chunks)
            if not size:
                continue
            free[move.source] = max(ready[move.source], free[move.source]) + size / link.bytes_per_second
            after[move.target] = max(after[move.target], free[move.source] + link.latency_seconds)
        ready = after
    return max(ready, default=0.0)


Formula = Callable[[int, float, LinkClass], float]


def _ring(ranks: int, size_bytes: float, link: LinkClass) -> float:
    return 2 * (ranks - 1) * link.latency_seconds + 2 * (ranks - 1) / ranks * size_bytes / link.bytes_per_second


def _tree(ranks: int, size_bytes: float, link: LinkClass) -> float:
    return 2 * ceil(log2(ranks)) * link.seconds(size_bytes)


def _recursive_doubling(ranks: int, size_bytes: float, link: LinkClass) -> float:
    return ceil(log2(ranks)) * link.seconds(size_bytes)


def _halving_doubling(ranks: int, size_bytes: float, link: LinkClass) -> float:
    return 2 * log2(ranks) * link.latency_seconds + 2 * (ranks - 1) / ranks * size_bytes / link.bytes_per_second


ALL_REDUCE_SECONDS: Mapping[str, Formula] = MappingProxyType({
    "ring": _ring, "tree": _tree, "recursive-doubling": _recursive_doubling, "halving-doubling": _halving_doubling,
})


def algbw(size_bytes: float, duration_seconds: float) -> float:
    """Bytes a second: the whole array's size by the duration, as nccl-tests counts it. The array of an AllGather or a
    ReduceScatter is that of all ranks together."""
    return size_bytes / duration_seconds


# By what algbw is multiplied for busbw: how much of the array each link has to carry, whatever the algorithm.
_BUS_SHARE: Mapping[str, Callable[[int], float]] = MappingProxyType({
    "all_reduce": lambda ranks: 2 * (ranks - 1) / ranks,
    **dict.fromkeys(("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"), lambda ranks: (ranks - 1) / ranks),
    **dict.fromkeys(("broadcast", "reduce", "send_receive"), lambda ranks: 1.0),
})


def bus_share(collective: str, ranks: int) -> float | None:
    """By what algbw is multiplied for busbw; None for a barrier, which carries nothing."""
    return _BUS_SHARE[collective](ranks) if collective in _BUS_SHARE else None


def busbw(collective: str, ranks: int, size_bytes: float, duration_seconds: float) -> float:
    """Bytes a second that a link really carries: to be held against the link's own speed (nccl-tests, PERFORMANCE)."""
    return algbw(size_bytes, duration_seconds) * _BUS_SHARE[collective](ranks)


def by_cost(plans: Sequence[Plan], size_bytes: int, link_of: LinkOf) -> list[tuple[float, Plan]]:
    """Seconds and plan, the quickest first; of equals the one that is listed first."""
    return sorted(((seconds(plan, size_bytes, link_of), plan) for plan in plans), key=lambda pair: pair[0])
