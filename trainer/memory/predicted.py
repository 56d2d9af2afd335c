"""The most that each rank of a job will have in memory, by kind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from itertools import accumulate

from trainer.memory.activations import ELEMENT_BYTES, TOKEN_BYTES, Ends, StageBytes, hand_off_bytes, stage_bytes
from trainer.memory.sizes import SHARED_OUT
from trainer.memory.stages import PIXELS, Shape, stage_parameters
from trainer.schedules import SCHEDULES, schedule_of, stages_of
from trainer.schedules.actions import Action, Do
from trainer.spec import JobSpec, Perceptron
from trainer.splits.sizes import RECEIVES_AHEAD, STAMP_BYTES

MOST_ACTIONS = 100_000  # of all ranks, that are gone through one by one
MOMENTS = {"sgd": 0, "adamw": 2}
STEP_COUNT_BYTES = 4  # of each parameter tensor, beside AdamW's moments


@dataclass(frozen=True)
class RankMemory:
    """Bytes; each kind's peak. They need not fall together, so the sum is what a rank has at most."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    buffers: int  # the step's samples, messages between stages, DDP's buckets

    @property
    def total(self) -> int:
        return sum(astuple(self))


def predicted(spec: JobSpec) -> list[RankMemory]:
    """By place in the pipeline: copies, parts and slices of a place have the same. Where ranks share parameters out
    unevenly, that of the one with most."""
    stages = stages_of(spec)
    return [_place(spec, place, stages) for place in range(spec.grid.pp)]


def micro_batch_bytes(spec: JobSpec, stages: list[list[int]]) -> dict[int, StageBytes]:
    """Activations of one micro-batch, by stage; `stages` are those of each place."""
    home = {stage: place for place, held in enumerate(stages) for stage in held}
    last = len(home) - 1
    return {
        stage: stage_bytes(spec, spec.model.layers // len(home), Ends(
            first=stage == 0, last=stage == last,
            input_travels=stage > 0 and home[stage - 1] != place,
            gradient_travels=stage < last and home[stage + 1] != place,
        ))
        for stage, place in home.items()
    }


def _place(spec: JobSpec, place: int, stages: list[list[int]]) -> RankMemory:
    count = sum(map(len, stages))
    shapes = [shape for stage in stages[place] for shape in stage_parameters(spec, stage, count)]
    element = ELEMENT_BYTES[spec.precision]
    copies = spec.grid.dp * spec.grid.cp
    shared_out = SHARED_OUT.get("ddp", ())

    def held(kind: str) -> int:
        return sum(_share(shape, copies if kind in shared_out else 1) for shape in shapes)

    moments = MOMENTS[spec.optimizer.name]
    return RankMemory(
        weights=held("weights") * element,
        gradients=held("gradients") * element,
        optimizer=moments * held("optimizer") * element + (STEP_COUNT_BYTES * len(shapes) if moments else 0),
        activations=_activations(spec, place, stages),
        buffers=_buffers(spec, place, stages) + (held("gradients") * element if copies > 1 else 0),
    )


def _share(shape: Shape, ranks: int) -> int:
    """Numbers of a parameter that the rank with most of it has, if ranks divide its rows."""
    rows, *rest = shape
    return -(-rows // ranks) * math.prod(rest)


def _activations(spec: JobSpec, place: int, stages: list[list[int]]) -> int:
    sizes = micro_batch_bytes(spec, stages)
    schedule = spec.schedule
    if _is_short(spec, stages):
        return peak_bytes(schedule_of(spec)[place], sizes)
    held = SCHEDULES[schedule.name].held(place, spec.grid.pp, schedule.micro_batches, schedule.chunks)
    return held * max(max(sizes[stage].forward, sizes[stage].put_off) for stage in stages[place])


def _is_short(spec: JobSpec, stages: list[list[int]]) -> bool:
    """Whether its actions are few enough to go through. Those of one's own schedule always are."""
    return spec.schedule.name == "csv" or 3 * sum(map(len, stages)) * spec.schedule.micro_batches <= MOST_ACTIONS


def peak_bytes(actions: list[Action], sizes: Mapping[int, StageBytes]) -> int:
    """The most that lies between forwards and backwards as a rank goes through its actions."""
    changes = {
        (do, stage): change
        for stage, size in sizes.items()
        for do, change in (
            (Do.FORWARD, size.forward), (Do.BACKWARD, -size.forward),
            (Do.BACKWARD_INPUT, size.put_off - size.forward), (Do.BACKWARD_WEIGHT, -size.put_off),
        )
    }
    return max(accumulate(changes[action.do, action.stage] for action in actions))


def _buffers(spec: JobSpec, place: int, stages: list[list[int]]) -> int:
    """Samples, and messages: one for each that the rank sends in a step, which are used again, and those it awaits."""
    own, count = stages[place], sum(map(len, stages))
    edges = [edge for stage in own for edge in (stage - 1, stage + 1) if 0 <= edge < count and edge not in own]
    letters = len(edges) * spec.schedule.micro_batches  # as many in as out
    awaited = min(RECEIVES_AHEAD, letters if 0 in own else max(letters - 1, 0))  # one is taken by the first action
    samples = spec.micro_batch_samples * spec.schedule.micro_batches
    read = (samples * _sample_bytes(spec) if 0 in own else 0) + (samples * _target_bytes(spec) if count - 1 in own else 0)
    return read + (letters + awaited) * (STAMP_BYTES + hand_off_bytes(spec)) + _handed_on(spec, place, stages)


def _handed_on(spec: JobSpec, place: int, stages: list[list[int]]) -> int:
    """Gradients that lie between two stages on the same rank while it does something else."""
    inner = [stage for stage in stages[place] if stage - 1 in stages[place]]
    if not inner:
        return 0
    if not _is_short(spec, stages):
        return spec.schedule.micro_batches * hand_off_bytes(spec)
    waiting = most = 0
    for action in schedule_of(spec)[place]:
        backward = action.do in (Do.BACKWARD, Do.BACKWARD_INPUT)
        waiting -= backward and action.stage + 1 in inner
        most = max(most, waiting)
        waiting += backward and action.stage in inner
    return most * hand_off_bytes(spec)


def _sample_bytes(spec: JobSpec) -> int:
    if isinstance(spec.model, Perceptron):
        return PIXELS * ELEMENT_BYTES[spec.precision]
    return spec.model.context // spec.grid.cp * TOKEN_BYTES


def _target_bytes(spec: JobSpec) -> int:
    return TOKEN_BYTES if isinstance(spec.model, Perceptron) else spec.model.context // spec.grid.cp * TOKEN_BYTES
