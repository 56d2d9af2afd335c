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

LEAST_GAP_NS = 10_000_000  # between two looks: a hundred a second, however short the actions
AGAIN_NS = 1_000_000_000  # a value that stays is said again, so that who looks at a stretch of time finds one in it
CLOSE_STEPS = 2  # first ones, in which every action is looked at: the most that a job holds is seen in them


class MemoryProbe:
    """Records from `install` to `remove`, at each `sample`. `module` holds the parameters, sharded already if they will be.

    `buffers` gives the bytes of what else lies in memory now.
    """

    def __init__(self, module: nn.Module, count: Count, where: Callable[[], int], buffers: Callable[[], int],
                 device: torch.device):
        self._module, self._count, self._step, self._buffers, self._device = module, count, where, buffers, device
        self._parameters = list(module.parameters())
        self._sharded = any(isinstance(parameter, DTensor) for parameter in self._parameters)
        self._without_gradient = self._parameters
        self._gradient_bytes = 0
        self._weight_bytes = bytes_of(self._parameters)
        self._state_bytes = 0
        self._states = 0  # parameters that an optimizer has state of
        self._steps = 0
        self._peak = self._latest = (0, 0)  # activations since the last look: bytes, at_ns
        self._next_look_ns = 0
        self._shown: dict[str, tuple[int, int]] = {}  # by kind: bytes, at_ns
        self._hook: Any = None

    def install(self) -> None:
        self._hook = register_optimizer_step_post_hook(self._after_optimizer)

    def remove(self) -> None:
        """Leaves nothing unsaid."""
        if self._latest[1]:
            self._look()
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def sample(self, activations: int, at_ns: int) -> None:
        """Hot path: at the end of every action, 0.2 µs but for a hundred looks a second."""
        self._latest = activations, at_ns
        if activations > self._peak[0]:
            self._peak = self._latest
        if at_ns >= self._next_look_ns:
            self._look()

    def end_step(self, activations: int) -> None:
        """Sample once more after the optimizer's step, when gradients have been let go of."""
        self._without_gradient, self._gradient_bytes = self._parameters, 0
        self._steps += 1
        self.sample(activations, time.monotonic_ns())

    def _look(self) -> None:
        activations, at_ns = self._latest
        self._next_look_ns = at_ns + LEAST_GAP_NS if self._steps >= CLOSE_STEPS else 0
        if self._peak[0] > activations and self._peak[1] > self._shown.get("activations", (0, 0))[1]:
            self._show("activations", *self._peak)
        self._peak = self._latest
        self._show("activations", activations, at_ns)
        self._show("weights", self._weight_bytes, at_ns)
        self._show("gradients", self._gradients(), at_ns)
        self._show("optimizer", self._state_bytes, at_ns)
        self._show("buffers", self._buffers() + (self._gathered() if self._sharded else 0), at_ns)
        if self._device.type == "cuda":
            self._show("allocated", torch.cuda.memory_allocated(self._device), at_ns)
            self._show("allocated_peak", torch.cuda.max_memory_allocated(self._device), at_ns)

    def _show(self, kind: str, value: int, at_ns: int) -> None:
        """Count a value that is new, or has not been said for long."""
        before = self._shown.get(kind)
        if before is None or value != before[0] or at_ns - before[1] >= AGAIN_NS:
            self._count(f"memory/{kind}", value, self._step(), at_ns)
            self._shown[kind] = value, at_ns

    def _gradients(self) -> int:
        """Bytes of all gradients. Once every parameter has one, nothing changes until the step ends; but FSDP may add up
        whole ones first, in those that it has gathered."""
        if self._sharded:
            every = (parameter.grad for parameter in (*self._parameters, *self._module.parameters()))
            return bytes_of(gradient for gradient in every if gradient is not None)
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


def bucket_bytes(module: DistributedDataParallel) -> int:
    """What DDP keeps to average gradients in: as much again as they, unless they are views into its buckets."""
    if module.gradient_as_bucket_view:
        return 0
    return sum(parameter.nbytes for parameter in module.parameters() if parameter.requires_grad)
