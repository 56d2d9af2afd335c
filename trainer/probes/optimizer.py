"""Every step of every torch optimizer as a span, by torch's own global hooks.

On CUDA it is the time that the host took to queue the step.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from trainer.trace.columns import Row
from trainer.trace.frame import NONE
from trainer.trace.kinds import Kind


class OptimizerProbe:
    def __init__(self, add: Callable[[Row], None], where: Callable[[], int]):
        self._add, self._step = add, where
        self._began_ns = 0
        self._handles: list[Any] = []

    def install(self) -> None:
        self._handles = [
            register_optimizer_step_pre_hook(self._before),
            register_optimizer_step_post_hook(self._after),
        ]

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _before(self, optimizer: object, args: object, kwargs: object) -> None:
        self._began_ns = time.monotonic_ns()

    def _after(self, optimizer: object, args: object, kwargs: object) -> None:
        name = type(optimizer).__name__
        self._add((Kind.OPTIMIZER, self._began_ns, time.monotonic_ns(), self._step(), NONE, NONE, NONE, NONE, NONE, name, ""))
