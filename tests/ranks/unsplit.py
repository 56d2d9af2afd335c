"""What one plain process gets: the whole model, the whole batch, one forward and one backward a step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import nn

from tests.ranks.launch import Ran, apart
from trainer.data import data_of
from trainer.models import model_of
from trainer.spec import JobSpec
from trainer.splits.expert import mixtures


def unsplit_losses(spec: JobSpec) -> list[float]:
    return [loss for loss, _ in _steps(spec)]


def unsplit_start(spec: JobSpec) -> dict[str, np.ndarray]:
    """The whole model's parameters before the first step. As arrays: a process takes its tensors with it when it ends."""
    model = model_of(spec)
    return {name: parameter.detach().numpy() for name, parameter in model.stage(0, model.layers).named_parameters()}


def unsplit_gradients(spec: JobSpec) -> dict[str, np.ndarray]:
    """Of the first step, by the parameter's name in the whole model."""
    _, module = next(_steps(spec))
    return {name: parameter.grad.numpy() for name, parameter in module.named_parameters() if parameter.grad is not None}


def unsplit_end(spec: JobSpec) -> dict[str, np.ndarray]:
    """The whole model's parameters after the last step."""
    *_, (_, module) = _steps(spec)
    return {name: parameter.detach().numpy() for name, parameter in module.named_parameters()}


def unsplit_tallies(spec: JobSpec) -> list[list[list[float]]]:
    """Of each step and layer, what its mixture of experts counted."""
    return [[mixture.take().tolist() for mixture in mixtures(module)] for _, module in _steps(spec)]


def _steps(spec: JobSpec) -> Iterator[tuple[float, nn.Sequential]]:
    """Loss of each step, and the model after it, with its gradients."""
    torch.set_num_threads(1)
    model, data = model_of(spec), data_of(spec)
    module = model.stage(0, model.layers)
    optimizer = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[spec.optimizer.name](
        module.parameters(), lr=spec.optimizer.learning_rate
    )
    for step in range(spec.steps):
        inputs, targets = data.take(data.step(step))
        loss = model.loss(module(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item(), module


def assert_equals_one_process(ran: Ran) -> None:
    expected = apart(unsplit_losses, ran.spec)
    assert len(ran.losses) == ran.spec.steps
    for step, (measured, plain) in enumerate(zip(ran.losses, expected, strict=True)):
        assert measured == pytest.approx(plain, rel=1e-9, abs=0), f"step {step}"
    assert expected[-1] < expected[0], "it learns, so that equal losses mean equal gradients"
