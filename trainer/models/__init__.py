"""The models that can be trained. Each builds any stretch of its layers by itself."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from trainer.models.gpt import GptModel
from trainer.models.mixture import MixtureModel
from trainer.models.perceptron import PerceptronModel
from trainer.spec import JobSpec, Moe, Perceptron

# Of weights, gradients, optimizer state and what stages hand on. With the latter in float32 too, cutting a model that
# computes in bfloat16 into stages rounds nothing that the whole model does not round.
DTYPES = {"float32": torch.float32, "float64": torch.float64, "bf16": torch.float32}


class Model(Protocol):
    layers: int

    def stage(self, first: int, last: int) -> nn.Sequential: ...

    def hand_off_shape(self, samples: int) -> tuple[int, ...]: ...

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor: ...


def model_of(spec: JobSpec) -> Model:
    dtype = DTYPES[spec.precision]
    if isinstance(spec.model, Perceptron):
        return PerceptronModel(spec.model, spec.seed, dtype)
    if isinstance(spec.model, Moe):
        return MixtureModel(spec.model, spec.seed, dtype)
    return GptModel(spec.model, spec.seed, dtype)
