"""Every step of every torch optimizer as a span, by torch's own global hooks.

It lasts as long as it really did, since the moment at which its rank was free. On CUDA it is the time that the host took to
queue the step.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from trainer.emulate.moment import Moment
from trainer.trace.kinds import Kind
from trainer.trace.row import Recorder, Tracepoint


class OptimizerProbe:
    def __init__(self, recorder: Recorder, where: Callable[[], int], moment: Moment | None = None):
        self._recorder, self._step, self._moment = recorder, where, moment or Moment()
        self._began_ns = self._really_began_ns = 0
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
        self._began_ns, self._really_began_ns = self._moment.ns, time.monotonic_ns()

    def _after(self, optimizer: object, args: object, kwargs: object) -> None:
        ended_ns = self._began_ns + time.monotonic_ns() - self._really_began_ns
        self._tracepoints[type(optimizer)].between(self._began_ns, ended_ns, self._step())
        self._moment.reach(ended_ns)
