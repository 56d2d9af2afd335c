"""Memory near the card's size: a cause that costs no time until the job does not fit, and what would lower it, in bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from dashboard.charts.alternatives import alternatives
from dashboard.charts.explain.pieces import can_simulate, step_ms
from dashboard.charts.explain.remedy import MemoryRemedy
from dashboard.runs.intake import as_value, with_changes
from dashboard.runs.words import SCHEDULES, percent, size
from trainer.complaints import SpecError
from trainer.emulate.devices import card_bytes
from trainer.grid import Grid
from trainer.memory import predicted
from trainer.spec import JobSpec, parse

NEAR = 0.8  # of the card: what fragments, and what operations need on their way, comes on top of what is counted
MOST_REMEDIES = 3
LEAST_GAIN = 0.01  # of what is held
MOST_COST = 0.5  # of a step: whoever pays more has nearly as much of two cards
MOST_WATCHED = 64  # ranks, one for each place in the pipeline: the others of a place hold the same

Peaks = Mapping[int, Mapping[str, float]]  # bytes of each kind by rank


def watched_ranks(spec: JobSpec) -> frozenset[int]:
    """Ranks whose memory stands for all ranks'; none where there is no card to hold it against."""
    if card_bytes(spec) is None:
        return frozenset()
    return frozenset(Grid.of(spec.grid).group("pp", 0)[:MOST_WATCHED])


def memory_cause(spec: JobSpec, peaks: Peaks) -> dict[str, Any] | None:
    """None unless the fullest rank has NEAR of its card or more: each kind's peak, added up."""
    card = card_bytes(spec)
    if card is None or not peaks:
        return None
    rank = max(sorted(peaks), key=lambda one: sum(peaks[one].values()))
    kinds, held = peaks[rank], sum(peaks[rank].values())
    if held < NEAR * card:
        return None
    dearest = max(kinds, key=lambda kind: kinds[kind])
    return {
        "key": "memory",
        "title": f"{dearest.capitalize()} near the card's size",
        "says": f"Rank {rank} has at most {size(held)} in memory, {percent(held / card)} of the card's {size(card)}; "
                f"{size(kinds[dearest])} of it are {dearest}. "
                + ("It does not fit." if held > card else "A little more, and it would not fit."),
        "ms": None, "bytes": held, "share": held / card,
        "remedies": [asdict(one) | {"share": one.gain_bytes / held} for one in _remedies(spec, held)],
    }


def _remedies(spec: JobSpec, held: float) -> list[MemoryRemedy]:
    """What lowers the fullest rank's memory most, by formulas; none where the job has none."""
    own = _fullest(spec)
    found = []
    for title, says, sets in _changes(spec) if own else ():
        try:
            changed = parse(with_changes(spec.model_dump(), {path: as_value(text) for path, text in sets.items()}))
        except SpecError:
            continue
        gain_bytes, costs = own - _fullest(changed), _costs(spec, changed)
        if gain_bytes >= LEAST_GAIN * held and (costs is None or costs[1] <= MOST_COST):
            found.append(MemoryRemedy(title, says, gain_bytes, costs and costs[0], sets))
    return sorted(found, key=lambda one: -one.gain_bytes)[:MOST_REMEDIES]


def _changes(spec: JobSpec) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Title, words, and what the launch form's address has to set."""
    if spec.checkpointing == "none" and spec.model.name != "perceptron":
        yield ("Activation checkpointing", "Each layer keeps its input alone and runs its forward again before its backward.",
               {"checkpointing": "layer"})
    own, *others = alternatives(spec) or [{}]
    for one in others:
        if one["micro_batches"] != own["micro_batches"]:
            yield (f"{one['micro_batches']} micro-batches in place of {own['micro_batches']}",
                   "A micro-batch of other size, and so what each forward leaves for its backward.", one["sets"])
        elif one["cut_evenly"] == own["cut_evenly"]:
            yield (f"The schedule {SCHEDULES[one['schedule']]}",
                   "It holds the activations of fewer micro-batches at once.", one["sets"])
    if spec.averaging_ranks > 1 and spec.splits.data.mode == "ddp":
        yield ("Optimizer, gradients and parameters in parts (ZeRO-3)", "Copies keep a part each of what all of them have now.",
               {"splits.data.mode": "zero-3"})


def _fullest(spec: JobSpec) -> int:
    return max((one.total for one in predicted(spec)), default=0)


def _costs(spec: JobSpec, changed: JobSpec) -> tuple[float, float] | None:
    """By how much a step would be longer, by the simulator: ms, and share; None where nobody can tell."""
    if not spec.pace.is_emulated or not (can_simulate(spec) and can_simulate(changed)):
        return None
    own_ms, changed_ms = step_ms(spec), step_ms(changed)
    return changed_ms - own_ms, changed_ms / own_ms - 1
