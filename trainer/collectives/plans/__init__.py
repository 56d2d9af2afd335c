"""Every algorithm by name. Torch-free: pages, costs and specs read plans as well as ranks do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

from trainer.collectives.plans import bruck, doubling, pat, ring, tree
from trainer.collectives.plans.plan import Plan, Steps, transposed, turned

ALGORITHMS: Mapping[str, Mapping[str, Callable[[int], Steps]]] = MappingProxyType({
    "all_reduce": {"ring": ring.all_reduce, "tree": tree.all_reduce, "recursive-doubling": doubling.all_reduce,
                   "halving-doubling": doubling.halving_doubling},
    "all_gather": {"ring": ring.all_gather, "tree": tree.all_gather, "recursive-doubling": doubling.all_gather,
                   "bruck": bruck.all_gather, "pat": pat.all_gather},
    "reduce_scatter": {"ring": ring.reduce_scatter, "tree": tree.reduce_scatter, "recursive-halving": doubling.reduce_scatter,
                       "pat": pat.reduce_scatter},
    "all_to_all": {"ring": ring.all_to_all, "bruck": bruck.all_to_all},
    "broadcast": {"ring": ring.broadcast, "tree": tree.broadcast},
    "reduce": {"ring": lambda ranks: transposed(ring.broadcast(ranks)), "tree": tree.reduce},
    "barrier": {"ring": ring.barrier, "tree": tree.barrier, "recursive-doubling": doubling.barrier},
})
ROOTED = ("broadcast", "reduce")


@lru_cache(maxsize=256)
def plan_of(collective: str, algorithm: str, ranks: int, root: int = 0) -> Plan:
    """KeyError for an algorithm that there is not. `root` counts for a broadcast and a reduce."""
    steps = ALGORITHMS[collective][algorithm](ranks)
    if collective in ROOTED:
        steps = turned(steps, ranks, root)
    chunks = ranks * ranks if collective == "all_to_all" else ranks
    return Plan(collective, algorithm, ranks, chunks, tuple(map(tuple, steps)))
