"""A process's memory as counters over time, by what it is for: bytes of the storages that are alive.

    memory/weights      parameters; of sharded ones this rank's part
    memory/gradients    as accumulated so far
    memory/optimizer    its state
    memory/activations  what forwards left for their backwards
    memory/buffers      all else that the caller knows of: samples, messages, buckets, gathered parameters
    memory/allocated    on CUDA, what the allocator has given out; memory/allocated_peak the most so far

What a single operation needs while it runs is in the last two alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_post_hook

from trainer.probes.held import bytes_of

Count = Callable[[str, float, int, int], None]  # name, value, step, at_ns

LEAST_GAP_NS = 10_000_000  # between two looks at a counter: a hundred a second, however short the actions
AGAIN_NS = 1_000_000_000


class MemoryProbe:
    """Records from `install` to `remove`, at each `sample`. `module` holds the parameters, sharded already if they will be."""

    def __init__(self, module: nn.Module, count: Count, where: Callable[[], int], device: torch.device):
        self._module, self._count, self._step, self._device = module, count, where, device
        self._parameters = list(module.parameters())
        self._sharded = any(isinstance(parameter, DTensor) for parameter in self._parameters)
        self._without_gradient = self._parameters
        self._gradient_bytes = 0
        self._weight_bytes = bytes_of(self._parameters)
        self._state_bytes = 0
        self._states = 0  # parameters that an optimizer has state of
        self._series: dict[str, _Series] = {}
        self._hook: Any = None

    def install(self) -> None:
        self._hook = register_optimizer_step_post_hook(self._after_optimizer)

    def remove(self) -> None:
        """Leaves nothing unsaid."""
        for series in self._series.values():
            series.settle()
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def sample(self, activations: int, buffers: int, at_ns: int) -> None:
        """What is alive at `at_ns`, which is now or a moment ago. Cheap: it looks at nothing that cannot have changed."""
        self._put("weights", self._weight_bytes, at_ns)
        self._put("optimizer", self._state_bytes, at_ns)
        self._put("activations", activations, at_ns)
        self._put("gradients", self._gradients(), at_ns)
        self._put("buffers", buffers + (self._gathered() if self._sharded else 0), at_ns)
        if self._device.type == "cuda":
            self._put("allocated", torch.cuda.memory_allocated(self._device), at_ns)
            self._put("allocated_peak", torch.cuda.max_memory_allocated(self._device), at_ns)

    def end_step(self, activations: int, buffers: int) -> None:
        """Sample once more after the optimizer's step, when gradients have been let go of."""
        self._without_gradient, self._gradient_bytes = self._parameters, 0
        self.sample(activations, buffers, time.monotonic_ns())

    def _gradients(self) -> int:
        """Bytes of all gradients. Once every parameter has one, nothing changes until the step ends."""
        missing = [parameter for parameter in self._without_gradient if parameter.grad is None]
        if len(missing) < len(self._without_gradient):
            gradients = (parameter.grad for parameter in self._parameters)
            self._gradient_bytes = bytes_of(gradient for gradient in gradients if gradient is not None)
            self._without_gradient = missing
        return self._gradient_bytes

    def _gathered(self) -> int:
        """Whole parameters that FSDP has gathered for the moment: the module has them in place of the sharded ones."""
        return bytes_of(parameter for parameter in self._module.parameters() if not isinstance(parameter, DTensor))

    def _after_optimizer(self, optimizer: torch.optim.Optimizer, args: object, kwargs: object) -> None:
        if len(optimizer.state) != self._states:
            self._states = len(optimizer.state)
            held = (value for state in optimizer.state.values() for value in state.values())
            self._state_bytes = bytes_of(value for value in held if isinstance(value, Tensor))

    def _put(self, kind: str, value: int, at_ns: int) -> None:
        if kind not in self._series:
            name = f"memory/{kind}"
            self._series[kind] = _Series(lambda value, at_ns: self._count(name, value, self._step(), at_ns))
        self._series[kind].put(value, at_ns)


class _Series:
    """One counter's values, thinned to two in LEAST_GAP_NS: the highest since it was last shown, and the latest.

    Said again now and then, so that who looks at a stretch of time finds a value in it.
    """

    def __init__(self, emit: Callable[[int, int], None]):
        self._emit = emit
        self._shown = self._latest = self._highest = (-1, -AGAIN_NS)  # value, at_ns

    def put(self, value: int, at_ns: int) -> None:
        if value == self._latest[0]:
            if at_ns - self._shown[1] >= AGAIN_NS:
                self.settle()
                self._show(value, at_ns)
            return
        if at_ns - self._latest[1] >= LEAST_GAP_NS:
            self.settle()  # what held so long is no blip
        self._latest = value, at_ns
        if value > self._highest[0]:
            self._highest = self._latest
        if at_ns - self._shown[1] >= LEAST_GAP_NS:
            self.settle()

    def settle(self) -> None:
        for value, at_ns in (self._highest, self._latest):
            if at_ns > self._shown[1]:
                self._show(value, at_ns)
        self._highest = self._latest

    def _show(self, value: int, at_ns: int) -> None:
        self._emit(value, at_ns)
        self._shown = value, at_ns


def bucket_bytes(module: DistributedDataParallel) -> int:
    """What DDP keeps to average gradients in: as much again as they, unless they are views into its buckets."""
    if module.gradient_as_bucket_view:
        return 0
    return sum(parameter.nbytes for parameter in module.parameters() if parameter.requires_grad)
