"""The recipe: how the gradients of a step change the weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from trainer.spec import JobSpec, OptimizerSpec
from trainer.splits.norm import GradientNorm


class Recipe:
    """Clips the gradients of `owned`, what this rank updates, sets the step's rate, and lets the optimizer go.

    `norm` tells how long the gradient is; None where that would cost a message and nobody asked for it.
    """

    def __init__(self, spec: JobSpec, owned: Sequence[nn.Parameter], norm: GradientNorm | None):
        self._spec, self._steps, self._norm = spec.optimizer, spec.steps, norm
        self._owned = owned
        self.optimizer = optimizer_of(spec.optimizer, owned) if owned else None  # a server's copies have none

    def rate(self, step: int) -> float:
        return self._spec.learning_rate * rate_share(self._spec, step, self._steps)

    def clip(self) -> Tensor | None:
        """The gradient's length before it was clipped, if it is known."""
        length = None if self._norm is None else self._norm.measure()
        if length is not None and self._spec.clip_norm:
            torch.nn.utils.clip_grads_with_norm_(self._owned, self._spec.clip_norm, length)
        return length

    def step(self, step: int) -> None:
        if self.optimizer is not None:
            for group in self.optimizer.param_groups:
                group["lr"] = self.rate(step)
            self.optimizer.step()


def rate_share(spec: OptimizerSpec, step: int, steps: int) -> float:
    """What part of the learning rate `step` has, of steps 0 … `steps` − 1.

    It rises evenly and is 1 in step `warmup_steps`; from there it falls, so that the last step has `final_share`, along a
    line or half a wave of a cosine (Loshchilov and Hutter, "SGDR", 2017). A decay that has no step left to fall in does not.
    """
    if step < spec.warmup_steps:
        return (step + 1) / (spec.warmup_steps + 1)
    falling_steps = steps - 1 - spec.warmup_steps
    if spec.decay == "none" or falling_steps < 1:
        return 1.0
    passed = (step - spec.warmup_steps) / falling_steps
    left = 1 - passed if spec.decay == "linear" else (1 + math.cos(math.pi * passed)) / 2
    return spec.final_share + (1 - spec.final_share) * left


def optimizer_of(spec: OptimizerSpec, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    kinds: dict[str, type[torch.optim.Optimizer]] = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}
    made = kinds[spec.name]
    # Fused, all parameters are one pass: a tenth of the time that many small ones take.
    return made(parameters, lr=spec.learning_rate, weight_decay=spec.weight_decay, fused=True)  # type: ignore[call-arg]
