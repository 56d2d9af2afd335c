"""What other algorithms and other places would do to the AllReduces of a job on modelled links, by α and β."""

from __future__ import annotations

from collections import Counter

from dashboard.charts.explain.remedy import Remedy
from dashboard.charts.explain.seen import Seen
from trainer import traffic
from trainer.collectives.cost import LinkOf, by_cost, chunk_bytes
from trainer.collectives.plans import ALGORITHMS, plan_of
from trainer.collectives.plans.plan import Plan
from trainer.emulate.link_classes import LinkClass
from trainer.emulate.links import Ports
from trainer.grid import Grid, averaging_axes
from trainer.placement import Placement, link_as_counted, slow_axes
from trainer.spec import JobSpec

MOST_SIMULATED = 64  # AllReduces of one size; the rest takes as long on average


def step_ms(spec: JobSpec, algorithm: str, ranks: list[int], messages: Counter[int]) -> float:
    """Of all AllReduces of a step among `ranks`, one behind the other, as the emulated links let them through.

    `messages` are sizes in bytes and how often each. "auto" is for each size what is the quickest by α and β alone.
    """
    placement = Placement.of(spec.grid, spec.placement)

    def link_of(one: int, other: int) -> LinkClass:
        return link_as_counted(spec, placement, ranks[one], ranks[other])

    names = ALGORITHMS["all_reduce"] if algorithm == "auto" else (algorithm,)
    plans = [plan_of("all_reduce", name, len(ranks)) for name in names]
    ports, seconds = Ports(spec, placement), 0.0
    for size_bytes, count in messages.items():
        plan = by_cost(plans, size_bytes, link_of)[0][1]
        some = min(count, MOST_SIMULATED)
        seconds += _through_ports(plan, chunk_bytes(plan, size_bytes), some, link_of, ports, ranks) * count / some
    return 1000 * seconds


def _through_ports(plan: Plan, sizes: list[int], count: int, link_of: LinkOf, ports: Ports, ranks: list[int]) -> float:
    """Seconds for `count` times the plan, where ranks of a server share its network ports.

    As `trainer.collectives.cost.seconds`, but a message waits until both of its ports are free, and a rank that is through
    with one goes on to the next: ranks that had to wait for a port once come at another moment the next time.
    """
    ready, free = [0.0] * plan.ranks, dict.fromkeys(range(ports.count), 0.0)
    for moves in plan.steps * count:
        after = list(ready)
        for move in sorted(moves, key=lambda move: ready[move.source]):
            link = link_of(move.source, move.target)
            both = ports.between(ranks[move.source], ranks[move.target])
            size_bytes = sum(sizes[chunk] for chunk in move.chunks)
            passed = max(ready[move.source], *(free[port] for port in both)) + size_bytes / link.bytes_per_second
            free |= dict.fromkeys(both, passed)
            after[move.target] = max(after[move.target], passed + link.latency_seconds)
        ready = after
    return max(ready)


def between_steps(seen: Seen) -> list[Remedy]:
    """Gradients by another algorithm: what it takes less for all of them at once, as behind a step's last backward."""
    messages, groups = traffic.of_copies(seen.spec), Grid.of(seen.spec.grid).groups(*averaging_axes(seen.spec).split("×"))
    if not _is_ours(seen.spec) or not messages or len(groups) > 1:  # several groups would share ports, at times nobody knows
        return []
    return _other_algorithm(seen.spec, groups[0], messages)


def inside_actions(seen: Seen) -> list[Remedy]:
    """Tensor slices: by another algorithm, or together in one server."""
    messages, groups = traffic.of_slices(seen.spec), Grid.of(seen.spec.grid).groups("tp")
    if not _is_ours(seen.spec) or not messages or len(groups) > 1:
        return []
    found = _other_algorithm(seen.spec, groups[0], messages) + _together(seen.spec, groups[0], messages)
    return [_no_more_than_over_the_pace(seen, one) for one in found]


def _is_ours(spec: JobSpec) -> bool:
    """Whether α and β rule the AllReduces: our algorithms over modelled links."""
    return spec.links.kind == "modelled" and spec.collectives.all_reduce != "backend"


def _other_algorithm(spec: JobSpec, group: list[int], messages: Counter[int]) -> list[Remedy]:
    own = spec.collectives.all_reduce
    costs_ms = {name: step_ms(spec, name, group, messages) for name in (own, *ALGORITHMS["all_reduce"])}
    best = min(costs_ms, key=lambda name: costs_ms[name])
    return [Remedy(f"AllReduce by {best}", _words(messages, costs_ms[own], f"by {own}", costs_ms[best], f"by {best}"),
                   costs_ms[own] - costs_ms[best], {"collectives.all_reduce": best})]


def _together(spec: JobSpec, group: list[int], messages: Counter[int]) -> list[Remedy]:
    if not slow_axes(spec):
        return []
    near = spec.model_copy(update={"placement": spec.placement.model_copy(
        update={"gpus_per_server": spec.grid.tp * spec.grid.cp, "servers": ""})})
    far_ms, near_ms = (step_ms(one, spec.collectives.all_reduce, group, messages) for one in (spec, near))
    sets = {"placement.gpus_per_server": str(near.placement.gpus_per_server)}
    if spec.placement.servers:
        sets["placement.servers"] = ""
    return [Remedy(f"All {spec.grid.tp} tensor slices in one server",
                   _words(messages, far_ms, "where they are", near_ms, "in one server"), far_ms - near_ms, sets)]


def _words(messages: Counter[int], own_ms: float, own: str, other_ms: float, other: str) -> str:
    return (f"A step's {messages.total()} AllReduces, the largest of {max(messages):,} bytes, take {own_ms:.3g} ms by α, β and "
            f"the ports {own}, and {other_ms:.3g} ms {other}.")


def _no_more_than_over_the_pace(seen: Seen, remedy: Remedy) -> Remedy:
    """A paced action never ends before its modelled time, so that no more can be gained than what actions last longer."""
    if not seen.spec.pace.is_emulated:
        return remedy
    over_ms = max(seen.busy_ms) * (1 - 1 / seen.usual) if seen.usual > 1 else 0.0
    return Remedy(remedy.title, remedy.says, min(remedy.gain_ms, over_ms), remedy.sets)
