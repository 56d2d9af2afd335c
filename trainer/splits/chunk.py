"""A stage of the model on the rank that holds it: its layers, and what lies there between forward and backward."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from trainer.models.linear import Linear, put_off_weights
from trainer.schedules.actions import Action, Do
from trainer.splits.data import Replica


class Chunk:
    """`actions` are the rank's; those of other stages do not count. `mixed`: weights in float32, products in bfloat16."""

    def __init__(self, stage: int, stages: int, actions: list[Action], replica: Replica,
                 loss: Callable[[Tensor, Tensor], Tensor], mixed: bool = False):
        self.stage, self.is_first, self.is_last = stage, stage == 0, stage == stages - 1
        self.replica = replica
        own = [action for action in actions if action.stage == stage]
        splits = any(action.do is Do.BACKWARD_WEIGHT for action in own)
        self._put_off = put_off_weights(replica.module) if splits else None
        numbers = {action.micro_batch for action in own}
        self.first_micro_batch, self._micro_batches = min(numbers), len(numbers)
        self._last_backward = [action for action in own if action.do in (Do.BACKWARD, Do.BACKWARD_WEIGHT)][-1]
        self._loss, self._mixed = loss, mixed
        self._held: dict[int, tuple[Tensor, Tensor]] = {}  # of each micro-batch in flight: the stage's input and output
        self._weights: dict[int, list[tuple[Linear, Tensor, Tensor]]] = {}

    def held(self, m: int) -> list[Tensor]:
        """What is kept of a micro-batch by name; autograd holds on to more."""
        put_off = [tensor for _, *both in self._weights.get(m, ()) for tensor in both]
        return [*self._held.get(m, ()), *put_off]

    def averages(self, action: Action) -> bool:
        """Whether gradients are averaged with other copies at the end of `action`."""
        if not self.replica.axis or action.do in (Do.FORWARD, Do.BACKWARD_INPUT):
            return False
        return self.replica.every or action == self._last_backward

    def forward(self, m: int, content: Tensor, targets: Tensor | None) -> Tensor:
        """The stage's output; of the last stage, its share of the mean loss of all its micro-batches."""
        with torch.autocast(content.device.type, torch.bfloat16, enabled=self._mixed):
            output = self.replica.forward(content)
            if self._mixed:
                output = output.float()  # what is handed on, and what the loss adds up
            if self.is_last:
                assert targets is not None
                # Micro-batches are equally large, so the mean over all of them is the mean of their means.
                output = self._loss(output, targets) / self._micro_batches
        self._held[m] = content, output
        return output.detach()

    def backward(self, action: Action, gradient: Tensor | None) -> tuple[Tensor | None, int]:
        """The gradient of the stage's input, and when the action's own work was done, ns."""
        m = action.micro_batch
        stage_input, output = self._held.pop(m)
        whole = self._put_off is None
        computed_ns = self.replica.backward(output, gradient, average=whole and self.averages(action))
        if self._put_off is not None:
            self._weights[m] = self._put_off.take()
            if action.do is Do.BACKWARD:
                computed_ns = self.backward_weights(action)
        return stage_input.grad, computed_ns

    def backward_weights(self, action: Action) -> int:
        """When the action's own work was done, ns."""
        return self.replica.backward_weights(self._weights.pop(action.micro_batch), average=self.averages(action))
