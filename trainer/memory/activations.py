"""What a forward of one micro-batch leaves in memory for its backward, in one stage on one rank.

Counted are the distinct tensors that autograd saves in the models of `trainer.models`, as torch 2.13 computes them
on a CPU in one precision. With b samples, t tokens, width w and h heads, E = b·t·w numbers are one activation:

    a block     its input, 2 norms' outputs, the sum behind attention (E each), queries, keys and values (3E),
                attention's output (E), the feed-forward's 4E before and 4E behind its GELU: 16E;
                mean and deviation of both norms, 4·b·t; a row's logarithm of sums in attention, b·h·t
    the head    its input and its norm's output, 2E, 2·b·t; the scores' softmax, b·t·vocabulary

Under activation checkpointing a block leaves its input alone.

Tensor slices divide what lies between a column and a row matrix, sequence parallel ones the sums and norms as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainer.memory.stages import DIGITS, PIXELS
from trainer.spec import Gpt, JobSpec, Perceptron
from trainer.splits.sizes import STAMP_BYTES

ELEMENT_BYTES = {"float32": 4, "float64": 8}
TOKEN_BYTES = 8
LOSS_NUMBERS = 2  # the mean, and by how much it was divided


@dataclass(frozen=True)
class StageBytes:
    """Of one micro-batch in one stage."""

    forward: int  # from its forward until its backward, or until the first half of one
    put_off: int  # from the first half of a backward until its second: inputs and outputs' gradients of the Linears


@dataclass(frozen=True)
class Ends:
    """Where a stage lies: whether it is the first or the last, and whether its neighbours are on other ranks.

    What comes from another rank lies behind the message's stamp; what comes from a stage on this one is that stage's.
    """

    first: bool
    last: bool
    input_travels: bool
    gradient_travels: bool


def stage_bytes(spec: JobSpec, layers: int, ends: Ends) -> StageBytes:
    if isinstance(spec.model, Perceptron):
        return _perceptron(spec, spec.model, layers, ends)
    return _gpt(spec, spec.model, layers, ends)


def hand_off_bytes(spec: JobSpec) -> int:
    """What one stage hands on to the next of one micro-batch, and the next one's gradient back; under bf16 that is float32."""
    element = ELEMENT_BYTES.get(spec.precision, 4)
    if isinstance(spec.model, Perceptron):
        return spec.micro_batch_samples * spec.model.width * element
    tokens = spec.model.context // spec.sequence_parts
    return spec.micro_batch_samples * tokens * spec.model.width * element


def sample_bytes(spec: JobSpec) -> int:
    """What the first stage reads of one sample."""
    if isinstance(spec.model, Perceptron):
        return PIXELS * ELEMENT_BYTES[spec.precision]
    return spec.model.context // spec.grid.cp * TOKEN_BYTES


def target_bytes(spec: JobSpec) -> int:
    """What the last stage compares one sample with."""
    return TOKEN_BYTES if isinstance(spec.model, Perceptron) else spec.model.context // spec.grid.cp * TOKEN_BYTES


def _perceptron(spec: JobSpec, model: Perceptron, layers: int, ends: Ends) -> StageBytes:
    """Every hidden layer leaves its ReLU's output, which the next layer takes; the last one the softmax. A put-off Linear has
    its input even if that is the output of a stage on the same rank, which that one's backward has let go of."""
    samples, element = spec.micro_batch_samples, ELEMENT_BYTES[spec.precision]
    hidden = layers - ends.last
    outputs = samples * model.width * hidden + ends.last * samples * DIGITS
    received = samples * model.width * ends.input_travels
    forward = (outputs + received + ends.last * LOSS_NUMBERS) * element + STAMP_BYTES * ends.input_travels
    inputs = samples * model.width * (layers - ends.first)
    put_off = (inputs + outputs) * element + STAMP_BYTES * ends.input_travels
    return StageBytes(forward, put_off)


def _gpt(spec: JobSpec, model: Gpt, layers: int, ends: Ends) -> StageBytes:
    tp, element = spec.grid.tp, ELEMENT_BYTES[spec.precision]
    samples, tokens = spec.micro_batch_samples, model.context // spec.grid.cp
    rows = samples * tokens
    stretch_rows = rows // tp if spec.splits.tensor.sequence_parallel else rows
    whole, stretch = rows * model.width, stretch_rows * model.width

    inside = (_attention(spec) + 8) * whole // tp  # what slices divide: attention's own, and 4E + 4E of the feed-forward
    block = 2 * whole + 2 * stretch + inside + 4 * stretch_rows + samples * model.heads // tp * tokens
    if spec.checkpointing == "layer":
        block = stretch
    linear_inputs, linear_gradients = 2 * whole + 5 * whole // tp, 2 * whole + 7 * whole // tp

    numbers, other_bytes = layers * block, 0
    put_off_numbers, put_off_bytes = layers * (linear_inputs + linear_gradients), 0
    if ends.first:
        other_bytes += rows * (TOKEN_BYTES + 1) if tp > 1 else 0  # each token's row here, and whether it is here
    elif ends.input_travels:
        other_bytes += STAMP_BYTES
    else:
        numbers -= stretch  # the input
    if ends.last:
        scores = rows * model.vocabulary // tp
        numbers += stretch + whole + 2 * stretch_rows + scores + (LOSS_NUMBERS if tp == 1 else 1)
        other_bytes += rows * (TOKEN_BYTES + 1) if tp > 1 else 0
        put_off_numbers += whole + scores
    else:
        numbers += stretch  # the output
        put_off_bytes += STAMP_BYTES if ends.gradient_travels and stretch == whole else 0
    return StageBytes(numbers * element + other_bytes, put_off_numbers * element + put_off_bytes)


def _attention(spec: JobSpec) -> int:
    """Activations (E) from queries, keys and values to the heads' joint output. Over a ring keys and values are copied
    to travel; by all-to-all the output is exchanged once more."""
    if spec.grid.cp == 1:
        return 4
    return 6 if spec.splits.context.attention == "ring" else 5
