"""What the models learn from: real data that is on every machine, no download."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from torch import Tensor

from trainer.data.digits import Digits
from trainer.data.text import Text
from trainer.models import DTYPES
from trainer.spec import Gpt, JobSpec


class Data(Protocol):
    def step(self, step: int) -> np.ndarray: ...

    def take(self, samples: np.ndarray) -> tuple[Tensor, Tensor]: ...


def data_of(spec: JobSpec) -> Data:
    if isinstance(spec.model, Gpt):
        return Text(spec.seed, spec.batch, spec.model.context)
    return Digits(spec.seed, spec.batch, DTYPES[spec.precision])
