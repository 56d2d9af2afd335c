"""What a rank's stages have in memory, told to the probe at the end of every action."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor, nn

from trainer.probes.held import Held, bytes_of
from trainer.probes.memory import Count, MemoryProbe
from trainer.schedules.actions import Action, Do
from trainer.splits.chunk import Chunk
from trainer.splits.messages import Letter, Messages
from trainer.trace.frame import NONE


class StageMemory:
    """Of a rank that holds `chunks`, by stage, whose parameters are in `modules`."""

    def __init__(self, modules: nn.Module, chunks: Mapping[int, Chunk], messages: Messages, count: Count, device: torch.device):
        self._chunks, self._messages = chunks, messages
        self._step = NONE
        self._held = Held(modules)
        self._bucket_bytes = sum(chunk.replica.bucket_bytes for chunk in chunks.values())
        self._sample_bytes = 0
        self._probe = MemoryProbe(modules, count, lambda: self._step, device)
        self._probe.install()

    def begin_step(self, step: int, inputs: Tensor | None, targets: Tensor | None) -> None:
        samples = [tensor for tensor in (inputs, targets) if tensor is not None]
        self._step, self._sample_bytes = step, bytes_of(samples)
        self._held.begin_step(samples)

    def forward(self, action: Action, content: Tensor, call: Callable[[], Tensor]) -> Tensor:
        """What `call`, the action's forward over `content`, returns."""
        chunk, m = self._chunks[action.stage], action.micro_batch
        output = self._held.forward((action.stage, content.shape), call, lambda: chunk.held(m))
        self._held.keep((action.stage, m), chunk.held(m), (action.stage, content.shape))
        return output

    def after(self, action: Action, at_ns: int, handed_on: Mapping[Letter, Tensor]) -> None:
        """`handed_on` lies on this rank between two of its stages; activations among it are still their stage's own."""
        if action.do is not Do.FORWARD:
            self._held.keep((action.stage, action.micro_batch), self._chunks[action.stage].held(action.micro_batch))
        gradients = (content for letter, content in handed_on.items() if letter.content == "B")
        self._probe.sample(self._held.bytes, self._buffers(gradients), at_ns)

    def end_step(self) -> None:
        """After the optimizer's step, once gradients are gone."""
        self._probe.end_step(self._held.bytes, self._buffers(()))

    def remove(self) -> None:
        self._probe.remove()

    def _buffers(self, handed_on: Iterable[Tensor]) -> int:
        return self._sample_bytes + self._bucket_bytes + self._messages.bytes + bytes_of(handed_on)
