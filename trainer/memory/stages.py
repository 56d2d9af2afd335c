"""The parameters of each stage as a rank holds them: their shapes, in the order of the layers."""

from __future__ import annotations

from trainer.schedules.cuts import layers_of
from trainer.spec import Gpt, JobSpec, Perceptron

PIXELS, DIGITS = 28 * 28, 10

Shape = tuple[int, ...]


def stage_parameters(spec: JobSpec, stage: int) -> list[Shape]:
    """Shapes of the parameters that one of the tensor slices has of a stage."""
    layers = layers_of(spec)
    first = sum(layers[:stage])
    last = first + layers[stage]
    if isinstance(spec.model, Perceptron):
        return [shape for layer in range(first, last) for shape in _perceptron_layer(spec.model, layer)]
    shapes = _embedding(spec.model, spec.grid.tp) if stage == 0 else []
    shapes += (last - first) * _block(spec.model, spec.grid.tp)
    return shapes + (_head(spec.model, spec.grid.tp) if stage == len(layers) - 1 else [])


def without_linears(spec: JobSpec, stage: int) -> list[Shape]:
    """Of a stage's parameters those that are no Linear's, norms and embeddings: where weights are put off, their gradients are
    not. Tensor slices add the biases of row matrices behind their sum, outside of these."""
    if isinstance(spec.model, Perceptron):
        return []
    layers, tp, width = layers_of(spec), spec.grid.tp, spec.model.width
    norms = 2 * layers[stage] + (stage == len(layers) - 1)
    biases = 2 * layers[stage] if tp > 1 else 0
    return (_embedding(spec.model, tp) if stage == 0 else []) + norms * _norm(width) + biases * [(width,)]


def _perceptron_layer(model: Perceptron, layer: int) -> list[Shape]:
    inputs = PIXELS if layer == 0 else model.width
    outputs = DIGITS if layer == model.layers - 1 else model.width
    return [(outputs, inputs), (outputs,)]


def _embedding(model: Gpt, tp: int) -> list[Shape]:
    return [(model.vocabulary // tp, model.width), (model.context, model.width)]


def _block(model: Gpt, tp: int) -> list[Shape]:
    width = model.width
    part = width // tp
    attention = [(3 * part, width), (3 * part,), (width, part), (width,)]
    feed_forward = [(4 * part, width), (4 * part,), (width, 4 * part), (width,)]
    return [*_norm(width), *attention, *_norm(width), *feed_forward]


def _head(model: Gpt, tp: int) -> list[Shape]:
    part = model.vocabulary // tp
    return [*_norm(model.width), (part, model.width), (part,)]


def _norm(width: int) -> list[Shape]:
    return [(width,), (width,)]
