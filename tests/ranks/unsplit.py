"""What one plain process gets: the whole model, the whole batch, one forward and one backward a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

from tests.ranks.launch import Ran, apart
from trainer.data import data_of
from trainer.models import model_of
from trainer.recipe import rate_share
from trainer.spec import JobSpec
from trainer.splits.expert import mixtures

UNSPLIT = ("model", "optimizer", "batch", "steps", "precision", "seed")  # what matters to one process


class Step(NamedTuple):
    """`module` is the model with the step's gradients, as they were applied; `norm` is their length before they were clipped."""

    loss: float
    norm: float
    module: nn.Sequential


def of_one_process(function: Callable[[JobSpec], Any], spec: JobSpec) -> Any:
    """What `function`, one of those below, returns for the job in a process of its own: once for all ways to split it. Not to be
    changed."""
    return _of_one_process(function, JobSpec(**{name: getattr(spec, name) for name in UNSPLIT}))


@cache
def _of_one_process(function: Callable[[JobSpec], Any], spec: JobSpec) -> Any:
    return apart(function, spec)


def unsplit_losses(spec: JobSpec) -> list[float]:
    return [step.loss for step in _steps(spec)]


def unsplit_norms(spec: JobSpec) -> list[float]:
    return [step.norm for step in _steps(spec)]


def unsplit_start(spec: JobSpec) -> dict[str, np.ndarray]:
    """The whole model's parameters before the first step. As arrays: a process takes its tensors with it when it ends."""
    model = model_of(spec)
    return {name: parameter.detach().numpy() for name, parameter in model.stage(0, model.layers).named_parameters()}


def unsplit_gradients(spec: JobSpec) -> dict[str, np.ndarray]:
    """Of the first step, by the parameter's name in the whole model."""
    module = next(_steps(spec)).module
    return {name: parameter.grad.numpy() for name, parameter in module.named_parameters() if parameter.grad is not None}


def unsplit_end(spec: JobSpec) -> dict[str, np.ndarray]:
    """The whole model's parameters after the last step."""
    *_, last = _steps(spec)
    return {name: parameter.detach().numpy() for name, parameter in last.module.named_parameters()}


def unsplit_tallies(spec: JobSpec) -> list[list[list[float]]]:
    """Of each step and layer, what its mixture of experts counted."""
    return [[mixture.take().tolist() for mixture in mixtures(step.module)] for step in _steps(spec)]


def _steps(spec: JobSpec) -> Iterator[Step]:
    torch.set_num_threads(1)
    model, data = model_of(spec), data_of(spec)
    module = model.stage(0, model.layers)
    recipe = spec.optimizer
    optimizer = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[recipe.name](
        module.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate_share(recipe, step, spec.steps))
    for step in range(spec.steps):
        inputs, targets = data.take(data.step(step))
        with torch.autocast("cpu", torch.bfloat16, enabled=spec.precision == "bf16"):
            loss = model.loss(module(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(module.parameters(), recipe.clip_norm or torch.inf)
        optimizer.step()
        rate.step()
        yield Step(loss.item(), norm.item(), module)


def assert_equals_one_process(ran: Ran, tolerance: float = 1e-9) -> None:
    expected = of_one_process(unsplit_losses, ran.spec)
    assert len(ran.losses) == ran.spec.steps
    for step, (measured, plain) in enumerate(zip(ran.losses, expected, strict=True)):
        assert measured == pytest.approx(plain, rel=tolerance, abs=0), f"step {step}"
    assert expected[-1] < expected[0], "it learns, so that equal losses mean equal gradients"
