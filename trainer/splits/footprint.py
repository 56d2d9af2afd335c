"""What a rank's stages have in memory, told to the probe at the end of every action."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import torch
from torch import Tensor, nn

from trainer.probes.held import Held, bytes_of
from trainer.probes.memory import Count, MemoryProbe
from trainer.schedules.actions import Action, Do
from trainer.splits.chunk import Chunk
from trainer.splits.messages import Letter, Messages
from trainer.trace.frame import NONE

FORWARD, PUT_OFF = "forward", "put off"


class StageMemory:
    """Of a rank that holds `chunks`, by stage, whose parameters are in `modules`. Micro-batches are of one size.

    `fed_here` are the stages whose inputs come from another stage on this rank.
    """

    def __init__(self, modules: nn.Module, chunks: Mapping[int, Chunk], fed_here: Collection[int], messages: Messages,
                 count: Count, device: torch.device):
        self._chunks, self._fed_here, self._messages = chunks, fed_here, messages
        self._step = NONE
        self._samples: list[Tensor] = []
        self._handed_on: Mapping[Letter, Tensor] = {}
        self._held = Held(modules)
        self._bucket_bytes = sum(chunk.replica.bucket_bytes for chunk in chunks.values())
        self._probe = MemoryProbe(modules, count, lambda: self._step, self._buffers, device)
        self._probe.install()

    def begin_step(self, step: int, inputs: Tensor | None, targets: Tensor | None, handed_on: Mapping[Letter, Tensor]) -> None:
        """`handed_on` is what lies on this rank between two of its stages."""
        self._step, self._handed_on = step, handed_on
        self._samples = [tensor for tensor in (inputs, targets) if tensor is not None]

    def forward(self, action: Action, content: Tensor, call: Callable[[], Tensor]) -> Tensor:
        """What `call`, the action's forward over `content`, returns."""
        stage, m = action.stage, action.micro_batch
        elsewhere = self._samples + ([content] if stage in self._fed_here else [])  # which the stage before has as its output
        return self._held.forward((FORWARD, stage), call, lambda: self._chunks[stage].held(m), elsewhere)

    def after(self, action: Action, at_ns: int) -> None:
        stage, m = action.stage, action.micro_batch
        match action.do:
            case Do.BACKWARD:
                self._held.let_go((FORWARD, stage))
            case Do.BACKWARD_INPUT:
                self._held.let_go((FORWARD, stage))
                self._held.put_off((PUT_OFF, stage), lambda: self._chunks[stage].held(m), self._samples)
            case Do.BACKWARD_WEIGHT:
                self._held.let_go((PUT_OFF, stage))
        self._probe.sample(self._held.bytes, at_ns)

    def end_step(self) -> None:
        """After the optimizer's step, once gradients are gone."""
        self._probe.end_step(self._held.bytes)

    def remove(self) -> None:
        self._probe.remove()

    def _buffers(self) -> int:
        gradients = (content for letter, content in self._handed_on.items() if letter.content == "B")
        return bytes_of(self._samples) + self._bucket_bytes + self._messages.bytes + bytes_of(gradients)
