"""How many bytes a rank sends in a step, by axis: the traffic of the launch page. Nothing here loads torch."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from math import ceil, log2

from trainer.collectives.cost import bus_share, chunk_bytes
from trainer.collectives.plans import plan_of
from trainer.collectives.ported import Network, network_of, ranked, together
from trainer.grid import AXES, MIRROR, Grid
from trainer.memory.activations import hand_off_bytes
from trainer.spec import JobSpec
from trainer.traffic import calls, letters, talks

MOST_PLANNED = 32  # ranks of a group whose plan is looked through; of larger ones formulas are taken

# The busiest rank's part of an AllReduce of M bytes among N ranks.
_ALL_REDUCE_SHARE = {"tree": lambda ranks: ceil(log2(ranks)), "recursive-doubling": lambda ranks: ceil(log2(ranks))}


def sent_bytes(spec: JobSpec) -> dict[str, int]:
    """What the busiest rank sends in a step along each set of axes, slowest first.

    A collective that its backend carries out is counted as a ring: 2(N−1)/N of the array for an AllReduce, (N−1)/N else.
    """
    network = network_of(spec)
    by_axis: Counter[str] = Counter()
    known: dict[tuple[str, str, int], int] = {}  # of one call; places of a pipeline have most in common
    for place in range(spec.grid.pp):
        own: Counter[str] = Counter(pp=letters(spec, place) * hand_off_bytes(spec))
        for talk in talks(spec, place):
            key = talk.axis, talk.collective, talk.size_bytes
            if key not in known:
                known[key] = _sent(spec, network, *key)
            own[talk.axis] += calls(spec, talk) * known[key]
        for axis, sent in own.items():
            if sent:
                by_axis[axis] = max(sent, by_axis[axis])
    return dict(sorted(by_axis.items(), key=lambda item: (*AXES, MIRROR).index(item[0].split("×")[0])))


def _sent(spec: JobSpec, network: Network, axis: str, collective: str, size_bytes: int) -> int:
    if collective == "send":
        return size_bytes
    ranks = len(Grid.of(spec.grid).groups(*axis.split("×"))[0])
    name = _algorithm(spec, network, axis, ranks, collective, size_bytes)
    if ranks > MOST_PLANNED:
        share = _ALL_REDUCE_SHARE.get(name) if collective == "all_reduce" else None
        return round(size_bytes * (share(ranks) if share else bus_share(collective, ranks) or 0))
    return _planned(collective, name, ranks, size_bytes)


@lru_cache(maxsize=1024)
def _planned(collective: str, algorithm: str, ranks: int, size_bytes: int) -> int:
    plan = plan_of(collective, algorithm, ranks)
    by_source: Counter[int] = Counter()
    for (source, _), sent in plan.traffic(chunk_bytes(plan, size_bytes)).items():
        by_source[source] += sent
    return max(by_source.values(), default=0)


def _algorithm(spec: JobSpec, network: Network, axis: str, ranks: int, collective: str, size_bytes: int) -> str:
    name: str = getattr(spec.collectives, collective)
    if name not in ("auto", "backend"):
        return name
    if name == "backend" or spec.links.kind == "real" or ranks > MOST_PLANNED:
        return "ring"
    groups = together(network, Grid.of(spec.grid).groups(*axis.split("×")))
    return ranked(network, groups, collective, size_bytes)[0][1].algorithm
