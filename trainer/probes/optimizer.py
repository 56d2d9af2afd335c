"""Every step of every torch optimizer as a span, by torch's own global hooks.

On CUDA it is the time that the host took to queue the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from trainer.trace.kinds import Kind
from trainer.trace.row import Recorder, Tracepoint


class OptimizerProbe:
    def __init__(self, recorder: Recorder, where: Callable[[], int]):
        self._recorder, self._step = recorder, where
        self._tracepoints: dict[type, Tracepoint] = {}
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
        kind = type(optimizer)
        if kind not in self._tracepoints:
            self._tracepoints[kind] = self._recorder.tracepoint(Kind.OPTIMIZER, kind.__name__)
        self._tracepoints[kind].start()

    def _after(self, optimizer: object, args: object, kwargs: object) -> None:
        self._tracepoints[type(optimizer)].end(self._step())
