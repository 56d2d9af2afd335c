"""What other algorithms and other places would do to the AllReduces of a job on modelled links, by α and β."""

from __future__ import annotations

from collections import Counter

from dashboard.charts.explain.remedy import Remedy
from dashboard.charts.explain.seen import Seen
from trainer import traffic
from trainer.collectives.plans import ALGORITHMS, plan_of
from trainer.collectives.ported import network_of, ranked, repeated
from trainer.grid import Grid, averaging_axes
from trainer.placement import slow_axes
from trainer.spec import JobSpec


def step_ms(spec: JobSpec, algorithm: str, ranks: list[int], messages: Counter[int]) -> float:
    """Of all AllReduces of a step among `ranks`, one behind the other, as the emulated links let them through.

    `messages` are sizes in bytes and how often each. "auto" is for each size what ranks choose.
    """
    network, seconds = network_of(spec), 0.0
    for size_bytes, count in messages.items():
        plan = (ranked(network, [ranks], "all_reduce", size_bytes)[0][1] if algorithm == "auto"
                else plan_of("all_reduce", algorithm, len(ranks)))
        seconds += repeated(network, [ranks], plan, size_bytes, count)
    return 1000 * seconds


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
    if not seen.keeps_pace:
        return remedy
    over_ms = max(seen.busy_ms) * (1 - 1 / seen.usual) if seen.usual > 1 else 0.0
    return Remedy(remedy.title, remedy.says, min(remedy.gain_ms, over_ms), remedy.sets)
