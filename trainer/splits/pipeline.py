"""Pipeline parallelism: one rank holds one stage of the layers and works off its list of actions.

The order of the list is all that tells naive, GPipe and 1F1B apart: see `trainer.schedules`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from trainer.emulate.pace import Pacer
from trainer.models.linear import Linear, WeightGradients
from trainer.schedules.actions import Action, Do
from trainer.splits.data import Replica
from trainer.splits.messages import Letter, Messages
from trainer.trace.columns import Row
from trainer.trace.frame import NONE
from trainer.trace.kinds import Kind

RECEIVES_AHEAD = 4  # enough that a neighbour finds room for what it sends, few enough to bound memory

KIND_OF = {
    Do.FORWARD: Kind.FORWARD,
    Do.BACKWARD: Kind.BACKWARD,
    Do.BACKWARD_INPUT: Kind.BACKWARD_INPUT,
    Do.BACKWARD_WEIGHT: Kind.BACKWARD_WEIGHT,
}


@dataclass(frozen=True)
class Place:
    """Where a stage is in its pipeline."""

    stage: int
    stages: int

    @property
    def is_first(self) -> bool:
        return self.stage == 0

    @property
    def is_last(self) -> bool:
        return self.stage == self.stages - 1


class PipelineStage:
    """Runs one stage's `actions` of a step. `put_off` is given when backwards are split."""

    def __init__(
        self, actions: list[Action], place: Place, replica: Replica, loss: Callable[[Tensor, Tensor], Tensor],
        messages: Messages, pacer: Pacer, add: Callable[[Row], None], put_off: WeightGradients | None = None,
    ):
        self._actions, self._place, self._replica, self._loss = actions, place, replica, loss
        self._messages, self._pacer, self._add, self._put_off = messages, pacer, add, put_off
        self._micro_batches = 1 + max(action.micro_batch for action in actions)
        self._letters = [letter for action in actions if (letter := self._awaited(action)) is not None]
        self._receives = iter(self._letters)
        completes = Do.BACKWARD_WEIGHT if put_off is not None else Do.BACKWARD
        self._last_backward = [action for action in actions if action.do is completes][-1]
        self._step = 0
        self._free_ns = 0  # since when nothing runs in this stage
        self._held: dict[int, tuple[Tensor, Tensor]] = {}  # of each micro-batch in flight: the stage's input and output
        self._weights: dict[int, list[tuple[Linear, Tensor, Tensor]]] = {}
        self._losses: list[Tensor] = []

    def step(self, step: int, inputs: Tensor | None, targets: Tensor | None) -> Tensor | None:
        """Gradients of one step, accumulated over its micro-batches and averaged over the copies.

        The first stage needs `inputs` and the last one `targets`, the first axis of each counting micro-batches.
        The last stage returns the mean loss of this copy's samples.
        """
        self._step, self._losses = step, []
        self._free_ns = time.monotonic_ns()
        self._receives = iter(self._letters)
        self._post(RECEIVES_AHEAD)
        for action in self._actions:
            letter = self._awaited(action)
            content, sent_ns = (None, 0) if letter is None else self._messages.take(letter, step)
            self._run(action, self._pacer.begin(self._free_ns, sent_ns), content, inputs, targets)
        self._messages.settle()
        return torch.stack(self._losses).sum() if self._losses else None

    def _run(
        self, action: Action, start_ns: int, content: Tensor | None, inputs: Tensor | None, targets: Tensor | None
    ) -> None:
        m = action.micro_batch
        if self._awaited(action) is not None:
            self._post(1)  # in the place of the one just taken
        if self._averages(action):
            self._pacer.rest_before(action.do, start_ns)
        match action.do:
            case Do.FORWARD:
                if content is None:
                    assert inputs is not None
                    content = inputs[m]
                else:
                    content.requires_grad_()
                output = self._forward(m, content, targets)
                self._finish(action, start_ns, time.monotonic_ns())
                if not self._place.is_last:
                    self._messages.send(Letter("F", action.stage + 1, m), action.stage + 1, output.detach(), self._step)
            case Do.BACKWARD | Do.BACKWARD_INPUT:
                stage_input, output = self._held.pop(m)
                computed_ns = self._replica.backward(output, content, last=action == self._last_backward)
                if self._put_off is not None:
                    self._weights[m] = self._put_off.take()
                self._finish(action, start_ns, computed_ns)
                if not self._place.is_first:
                    assert stage_input.grad is not None
                    self._messages.send(Letter("B", action.stage - 1, m), action.stage - 1, stage_input.grad, self._step)
            case Do.BACKWARD_WEIGHT:
                computed_ns = self._replica.backward_weights(self._weights.pop(m), last=action == self._last_backward)
                self._finish(action, start_ns, computed_ns)

    def _forward(self, m: int, content: Tensor, targets: Tensor | None) -> Tensor:
        output = self._replica.forward(content)
        if self._place.is_last:
            assert targets is not None
            # Micro-batches are equally large, so the mean over all of them is the mean of their means.
            output = self._loss(output, targets[m]) / self._micro_batches
            self._losses.append(output.detach().double())
        self._held[m] = content, output
        return output

    def _finish(self, action: Action, start_ns: int, computed_ns: int) -> None:
        """Record an action that has been computed, after pacing it.

        A last backward under DDP returns later than its own gradients are ready, once they are averaged.
        What that took beyond the action itself is waiting for other copies, not work.
        """
        returned_ns = time.monotonic_ns()
        end_ns = self._pacer.finish(action.do, start_ns, computed_ns)
        where = (self._step, action.micro_batch, action.stage)
        self._add((KIND_OF[action.do], start_ns, end_ns, *where, NONE, NONE, NONE, str(action), ""))
        if end_ns < returned_ns and self._averages(action):
            self._add((Kind.WAIT, end_ns, returned_ns, *where, NONE, NONE, NONE, "gradients", self._replica.axis))
            end_ns = returned_ns
        self._free_ns = end_ns

    def _averages(self, action: Action) -> bool:
        """Whether gradients are averaged with other copies at the end of `action`."""
        return bool(self._replica.axis) and action == self._last_backward

    def _awaited(self, action: Action) -> Letter | None:
        """The letter that has to arrive before `action` can start."""
        if action.do is Do.FORWARD and not self._place.is_first:
            return Letter("F", action.stage, action.micro_batch)
        if action.do in (Do.BACKWARD, Do.BACKWARD_INPUT) and not self._place.is_last:
            return Letter("B", action.stage, action.micro_batch)
        return None

    def _post(self, count: int) -> None:
        """Post the next `count` receives of the step, in the order in which they will be taken."""
        for letter in islice(self._receives, count):
            self._messages.post(letter, letter.stage + (-1 if letter.content == "F" else 1))
