"""What to try against each cause, with the step time that the simulator expects of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from dashboard.charts.alternatives import alternatives
from dashboard.charts.explain.network import between_steps, inside_actions
from dashboard.charts.explain.pieces import can_simulate, slow_ranks, slowness_of_places, step_ms
from dashboard.charts.explain.remedy import Remedy
from dashboard.charts.explain.seen import Seen
from dashboard.runs.words import SCHEDULES, percent
from trainer.misfits import complaints
from trainer.schedules.cuts import layers_of
from trainer.spec import JobSpec

MOST_REMEDIES = 3  # for one cause
LEAST_GAIN = 0.01  # of a step: less is not worth a change


def remedies(seen: Seen, cause: str) -> list[Remedy]:
    """The best first; none that gains less than LEAST_GAIN."""
    rule = RULES.get(cause)
    if rule is None or not can_simulate(seen.spec):
        return []
    found = [one for one in rule(seen) if one.gain_ms >= LEAST_GAIN * seen.period_ms]
    return sorted(found, key=lambda one: -one.gain_ms)[:MOST_REMEDIES]


@lru_cache(maxsize=64)
def _alternatives(spec: JobSpec) -> tuple[dict[str, Any], ...]:
    return tuple(alternatives(spec))


def _bubble(seen: Seen) -> list[Remedy]:
    """Of other numbers of micro-batches the best one, and the two best other schedules."""
    own, *others = _alternatives(seen.timed) or ({},)
    others = [one for one in others if one["cut_evenly"] == own["cut_evenly"]]
    by_count = [one for one in others
                if one["schedule"] == own["schedule"] and one["micro_batches"] != own["micro_batches"]]
    by_order = [one for one in others if one["micro_batches"] == own["micro_batches"]]
    best = sorted(by_count, key=lambda one: one["step_ms"])[:1] + sorted(by_order, key=lambda one: one["step_ms"])[:2]
    return [Remedy(_order_title(own, one), _order_words(own, one), own["step_ms"] - one["step_ms"], one["sets"])
            for one in best]


def _order_title(own: dict[str, Any], one: dict[str, Any]) -> str:
    if one["micro_batches"] != own["micro_batches"]:
        return f"{one['micro_batches']} micro-batches in place of {own['micro_batches']}"
    chunks = f", {one['chunks']} stages a rank" if one["chunks"] > 1 else ""
    twice = ", every stage on two ranks" if one["ways"] > own["ways"] else ""
    return f"The schedule {SCHEDULES[one['schedule']]}{chunks}{twice}"


def _order_words(own: dict[str, Any], one: dict[str, Any]) -> str:
    held = one["held"] / own["held"] - 1
    memory = f"{percent(abs(held))} {'more' if held > 0 else 'less'} room" if abs(held) >= 0.005 else "as much room as now"
    return (f"The bubble would be {percent(one['bubble_share'])} of the step in place of {percent(own['bubble_share'])}; "
            f"activations would take {memory}{_states_words(own, one)}.")


def _states_words(own: dict[str, Any], one: dict[str, Any]) -> str:
    """Of weights, gradients and the optimizer's state, which a rank has of each stage that it holds."""
    if own["ways"] == one["ways"]:
        return ""
    return ", weights and all that goes with them " + ("twice as much" if one["ways"] > own["ways"] else "half as much")


def _cuts(seen: Seen) -> list[Remedy]:
    return _other_cuts(seen, [1.0] * seen.spec.grid.pp, "so that stages have as nearly as possible the same work")


def _slow_rank(seen: Seen) -> list[Remedy]:
    slow = slowness_of_places(seen)
    usual = [seen.usual] * seen.spec.grid.pp
    worst = max(slow_ranks(seen), key=lambda rank: seen.slowness[rank], default=None)
    if worst is None:
        return []
    ordered = [fault for fault in seen.spec.faults if fault.kind == "slow-rank" and fault.rank == worst]
    others = [fault.model_dump(exclude_none=True) for fault in seen.spec.faults if fault not in ordered]
    found = [Remedy(f"Mend or replace the device of rank {worst}",
                    f"If it were as fast as the others{': here the job orders it to be slow' if ordered else ''}.",
                    step_ms(seen.timed, slow) - step_ms(seen.timed, usual),
                    {"faults": json.dumps(others)} if ordered else {})]
    if seen.spec.ways == 2:  # every stage is on a second rank, which would get what this one is relieved of
        return found
    return found + _other_cuts(seen, slow, f"so that rank {worst} has less to do, if it stays as slow")


def _other_cuts(seen: Seen, slowness: list[float], why: str) -> list[Remedy]:
    spec = seen.timed
    if spec.grid.pp == 1 or spec.schedule.chunks > 1:
        return []
    layers = balanced(spec.model.layers, slowness)
    if layers == layers_of(spec):
        return []
    wanted = [] if len(set(layers)) == 1 else layers
    changed = spec.model_copy(update={"schedule": spec.schedule.model_copy(update={"layers": tuple(wanted)})})
    if complaints(changed):
        return []
    words = ", ".join(map(str, layers))
    return [Remedy(f"Stages of {words} layers", f"Cut the model elsewhere, {why}.",
                   step_ms(spec, slowness) - step_ms(changed, slowness), {"schedule.layers": json.dumps(wanted)})]


def balanced(layers: int, slowness: list[float]) -> list[int]:
    """How many of `layers` each stage takes so that the longest one is as short as can be; each has at least one.

    A layer more for whoever then is done first: greedy, and for identical pieces optimal (Graham, 1969).
    """
    cut = [1] * len(slowness)
    for _ in range(layers - len(cut)):
        first = min(range(len(cut)), key=lambda stage: ((cut[stage] + 1) * slowness[stage], -stage))
        cut[first] += 1
    return cut


def _recompute(seen: Seen) -> list[Remedy]:
    plain = seen.timed.model_copy(update={"checkpointing": "none"})
    return [Remedy("No activation checkpointing", "Where memory has room for every layer's activations.",
                   step_ms(seen.timed) - step_ms(plain), {"checkpointing": "none"})]


def _between(seen: Seen) -> list[Remedy]:
    """Of what lies between steps only what other ways to share move more than a ring does."""
    copies, mode = seen.spec.averaging_ranks, seen.spec.splits.data.mode
    busiest = {"parameter-server": 2 * (copies - 1), "everyone": copies - 1}.get(mode)  # times the gradients, through one rank
    if busiest is None or copies == 1:
        return between_steps(seen)
    ring = 2 * (copies - 1) / copies
    gap_ms = seen.period_ms - seen.extent_ms
    return [Remedy("Average gradients by AllReduce (DDP)",
                   f"The busiest rank moves {busiest} times the gradients in a step; around a ring each moves {ring:.2g} times. "
                   "Counted is the traffic alone, as if nothing else lay between steps.",
                   gap_ms * (1 - ring / busiest), {"splits.data.mode": "ddp"})]


RULES: dict[str, Callable[[Seen], list[Remedy]]] = {
    "bubble": _bubble, "cuts": _cuts, "slow-rank": _slow_rank, "recompute": _recompute, "between": _between,
    "inside": inside_actions,
}
