"""The most that each rank of a job will have in memory, by kind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from itertools import accumulate

from trainer.memory.activations import ELEMENT_BYTES, Ends, StageBytes, hand_off_bytes, sample_bytes, stage_bytes, target_bytes
from trainer.memory.sizes import SHARED_OUT
from trainer.memory.stages import Shape, stage_parameters, without_linears
from trainer.schedules import SCHEDULES, puts_off_weights, schedule_of, stages_of
from trainer.schedules.actions import Action, Do, Schedule
from trainer.schedules.cuts import layers_of
from trainer.spec import JobSpec
from trainer.splits.sizes import RECEIVES_AHEAD, STAMP_BYTES

COVERED = ("perceptron", "gpt")  # models
MOST_ACTIONS = 30_000  # of all ranks, that are gone through one by one
MOMENTS = {"sgd": 0, "adamw": 2}
BESIDE_PIECES = ("zero-1", "zero-2")  # FSDP has a rank's pieces of parameters on storages of their own
STEP_COUNT_BYTES = 4  # of each parameter tensor, beside AdamW's moments


@dataclass(frozen=True)
class RankMemory:
    """Bytes; each kind's peak. They need not fall together, so the total is what a rank has at most."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    buffers: int  # the step's samples, messages between stages, DDP's buckets, parameters gathered from copies' pieces

    @property
    def total(self) -> int:
        return sum(astuple(self))


def predicted(spec: JobSpec) -> list[RankMemory]:
    """By place in the pipeline: copies, parts and slices of a place have the same. Empty where there are no formulas here:
    for a mixture of experts, and for bf16, whose activations are of two sizes.

    Where copies share parameters out unevenly, it is that of the one with most. Of a step too long to go through
    activations are a bound: as many as the schedule holds, of the largest stage.
    """
    if spec.model.name not in COVERED or spec.precision not in ELEMENT_BYTES:
        return []
    mode = spec.splits.data.mode
    stages = stages_of(spec)
    count = len(layers_of(spec))
    is_short = spec.schedule.name == "csv" or 3 * count * spec.schedule.micro_batches <= MOST_ACTIONS
    schedule = schedule_of(spec) if is_short else None
    sizes = micro_batch_bytes(spec, stages)
    ranks = []
    for place, own in enumerate(stages):
        shapes = [shape for stage in own for shape in stage_parameters(spec, stage)]
        weights, gradients, optimizer = _states(spec, shapes, mode)
        if mode in BESIDE_PIECES and spec.averaging_ranks > 1:
            gradients = _reduced(spec, own, schedule[place] if schedule is not None else None)
        ranks.append(RankMemory(
            weights, gradients, optimizer,
            _activations(spec, place, own, sizes, schedule),
            _samples(spec, own, count) + _messages(spec, place, own, schedule) + _of_copies(spec, shapes),
        ))
    return ranks


def micro_batch_bytes(spec: JobSpec, stages: list[list[int]]) -> dict[int, StageBytes]:
    """Activations of one micro-batch, by stage; `stages` are those of each place."""
    layers, last = layers_of(spec), len(layers_of(spec)) - 1
    return {
        stage: stage_bytes(spec, layers[stage], Ends(
            first=stage == 0, last=stage == last,
            input_travels=stage > 0 and stage - 1 not in _without_messages(spec, own),
            gradient_travels=stage < last and stage + 1 not in _without_messages(spec, own),
        ))
        for own in stages for stage in own
    }


def _without_messages(spec: JobSpec, own: list[int]) -> list[int]:
    """Stages that the rank of `own` ones hands on to or takes from without a message. Where micro-batches go both ways two
    stages on a rank have different ones, so there it does neither."""
    return own if spec.ways == 1 else []


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


def _of_copies(spec: JobSpec, shapes: list[Shape]) -> int:
    """What copies keep beside their states: DDP's buckets, or under zero-1 and zero-2 whole parameters beside the pieces, which
    FSDP gathers with the rows that make their pieces equally long. What zero-3 gathers is gone between actions."""
    copies, mode, element = spec.averaging_ranks, spec.splits.data.mode, ELEMENT_BYTES[spec.precision]
    if copies > 1 and mode in BESIDE_PIECES:
        return element * copies * sum(_share(shape, copies) for shape in shapes)
    return element * sum(map(math.prod, shapes)) if copies > 1 and mode == "ddp" else 0


def _states(spec: JobSpec, shapes: list[Shape], mode: str) -> tuple[int, int, int]:
    """Weights, gradients, optimizer."""
    element, shared_out = ELEMENT_BYTES[spec.precision], SHARED_OUT.get(mode, ())

    if mode in BESIDE_PIECES:
        shared_out = (*shared_out, "weights")

    def held(kind: str) -> int:
        return element * sum(_share(shape, spec.averaging_ranks if kind in shared_out else 1) for shape in shapes)

    moments = MOMENTS[spec.optimizer.name]
    return held("weights"), held("gradients"), moments * held("optimizer") + bool(moments) * STEP_COUNT_BYTES * len(shapes)


def _reduced(spec: JobSpec, own: list[int], actions: list[Action] | None) -> int:
    """Gradients under zero-1 and zero-2: whole as they add up, a rank's pieces once they are reduce-scattered. zero-1 does that
    in a stage's last backward and zero-2 in each. Where weights are put off, the first half of a backward leaves what it has,
    of norms and embeddings, whole: it is shared out with what a second half has. Without `actions` a bound."""
    every, element = spec.splits.data.mode == "zero-2", ELEMENT_BYTES[spec.precision]
    shapes = {stage: stage_parameters(spec, stage) for stage in own}
    pieces = {stage: element * sum(_share(shape, spec.averaging_ranks) for shape in shapes[stage]) for stage in own}
    whole = {stage: element * sum(map(math.prod, shapes[stage])) for stage in own}
    early = {stage: element * sum(map(math.prod, without_linears(spec, stage))) for stage in own}
    if actions is None:
        return sum(pieces.values()) + sum(early.values()) * puts_off_weights(spec) if every else sum(whole.values())
    last = {action.stage: action for action in actions if action.do in (Do.BACKWARD, Do.BACKWARD_WEIGHT)}
    shared_out: dict[int, int] = {}
    added_up: dict[int, int] = {}
    most = 0
    for action in actions:
        stage = action.stage
        if action.do is Do.BACKWARD_INPUT:
            added_up[stage] = max(added_up.get(stage, 0), early[stage])
        elif action.do is not Do.FORWARD and (every or action == last[stage]):
            shared_out[stage], added_up[stage] = pieces[stage], 0
        elif action.do is not Do.FORWARD:
            added_up[stage] = whole[stage]
        most = max(most, sum(shared_out.values()) + sum(added_up.values()))
    return most


def _share(shape: Shape, ranks: int) -> int:
    """Numbers of a parameter that the rank with most of it has, if ranks divide its rows."""
    rows, *rest = shape
    return -(-rows // ranks) * math.prod(rest)


def _activations(spec: JobSpec, place: int, own: list[int], sizes: Mapping[int, StageBytes], schedule: Schedule | None) -> int:
    if schedule is not None:
        return peak_bytes(schedule[place], sizes)
    held = SCHEDULES[spec.schedule.name].held(place, spec.grid.pp, spec.schedule.micro_batches, spec.schedule.chunks)
    return held * max(max(sizes[stage].forward, sizes[stage].put_off) for stage in own)


def _samples(spec: JobSpec, own: list[int], count: int) -> int:
    """The first stage has the step's inputs, the last one its targets; of both ways each has its half."""
    samples = spec.micro_batch_samples * spec.schedule.micro_batches // spec.ways
    return samples * ((0 in own) * sample_bytes(spec) + (count - 1 in own) * target_bytes(spec))


def _messages(spec: JobSpec, place: int, own: list[int], schedule: Schedule | None) -> int:
    """An envelope for each message that the rank sends in a step, used again in the next; and what is on its way in."""
    count, here = len(layers_of(spec)), _without_messages(spec, own)
    edges = [edge for stage in own for edge in (stage - 1, stage + 1) if 0 <= edge < count and edge not in here]
    letters = len(edges) * spec.schedule.micro_batches // spec.ways  # as many in as out
    content = hand_off_bytes(spec)
    envelope = STAMP_BYTES + content
    if schedule is not None:
        return _in_envelopes(spec, schedule[place], here, letters, content)
    has_neighbours = any(stage - 1 in here for stage in own)
    return (letters + RECEIVES_AHEAD) * envelope + has_neighbours * spec.schedule.micro_batches * content


def _in_envelopes(spec: JobSpec, actions: list[Action], here: list[int], letters: int, content: int) -> int:
    """The most that lies in envelopes as a rank goes through its actions: those for what it sends, made in the first step and
    kept; room for letters that come; and gradients from another stage on the same rank, for actions to come."""
    count, envelope = len(layers_of(spec)), STAMP_BYTES + content
    sent = taken = waiting = 0
    most = letters * envelope  # at the end of a step
    for action in actions:
        backward = action.do in (Do.BACKWARD, Do.BACKWARD_INPUT)
        source, target = action.stage + (1 if backward else -1), action.stage + (-1 if backward else 1)
        passes = action.do is not Do.BACKWARD_WEIGHT
        if passes and 0 <= source < count:
            taken += source not in here
            waiting -= backward and source in here
        out = sent if spec.steps == 1 else letters
        most = max(most, (out + min(RECEIVES_AHEAD, letters - taken)) * envelope + waiting * content)
        sent += passes and 0 <= target < count and target not in here
        waiting += backward and action.stage - 1 in here
    return most
