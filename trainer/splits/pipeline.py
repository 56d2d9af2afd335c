"""Pipeline parallelism: one rank holds one or more stages of the layers and works off its list of actions.

The order of the list, and where its stages lie, is all that tells one schedule from another: see `trainer.schedules`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import islice

import torch
from torch import Tensor

from trainer.emulate.pace import Pacer
from trainer.probes.stopwatch import Stopwatch
from trainer.schedules.actions import Action, Do
from trainer.splits.chunk import Chunk
from trainer.splits.footprint import StageMemory
from trainer.splits.messages import Letter, Messages
from trainer.splits.sizes import RECEIVES_AHEAD
from trainer.trace.frame import NONE
from trainer.trace.kinds import Kind
from trainer.trace.row import Recorder

KIND_OF = {
    Do.FORWARD: Kind.FORWARD,
    Do.BACKWARD: Kind.BACKWARD,
    Do.BACKWARD_INPUT: Kind.BACKWARD_INPUT,
    Do.BACKWARD_WEIGHT: Kind.BACKWARD_WEIGHT,
}


class PipelineRank:
    """Runs a rank's `actions` of a step on its `chunks`, by stage. `homes` are the places in the pipeline where each
    (stage, micro-batch) is done."""

    def __init__(self, actions: list[Action], chunks: Mapping[int, Chunk],
                 homes: Mapping[tuple[int, int], int], place: int,
                 messages: Messages, pacer: Pacer, stopwatch: Stopwatch, memory: StageMemory, recorder: Recorder):
        self._actions, self._chunks, self._homes, self._place = actions, chunks, homes, place
        self._messages, self._pacer, self._stopwatch, self._memory, self._add = messages, pacer, stopwatch, memory, recorder.add
        self._tracepoints = [
            recorder.tracepoint(KIND_OF[action.do], str(action), micro_batch=action.micro_batch, stage=action.stage)
            for action in actions]
        self._letters = [letter for action in actions if (letter := self._awaited(action)) and not self._is_here(letter)]
        self._receives = iter(self._letters)
        self._step = 0
        self._here: dict[Letter, Tensor] = {}  # handed from one stage on this rank to the next
        self._losses: list[Tensor] = []

    def step(self, step: int, inputs: Tensor | None, targets: Tensor | None) -> Tensor | None:
        """Gradients of one step, accumulated over its micro-batches and averaged over the copies.

        The first stage needs `inputs` and the last one `targets`, the first axis of each counting the stage's micro-batches.
        The rank of the last stage returns the mean loss of this copy's samples.
        """
        self._step, self._losses = step, []
        self._memory.begin_step(step, inputs, targets, self._here)
        self._receives = iter(self._letters)
        self._post(RECEIVES_AHEAD)
        for action, tracepoint in zip(self._actions, self._tracepoints, strict=True):
            self._tracepoint = tracepoint
            content, sent_ns = self._content(action)
            start_ns = self._pacer.begin(sent_ns)
            if sent_ns:
                self._post(1)  # in the place of the one just taken
            chunk = self._chunks[action.stage]
            averages = chunk.averages(action)
            self._pacer.rest(action, start_ns, work_last=averages, averages_beside=averages and chunk.replica.beside)
            self._stopwatch.start()
            match action.do:
                case Do.FORWARD:
                    self._forward(action, start_ns, content, inputs, targets)
                case Do.BACKWARD | Do.BACKWARD_INPUT:
                    gradient, computed_ns = chunk.backward(action, content)
                    self._finish(action, start_ns, computed_ns)
                    if not chunk.is_first:
                        assert gradient is not None
                        self._hand_on(Letter("B", action.stage - 1, action.micro_batch, action.way), gradient)
                case Do.BACKWARD_WEIGHT:
                    self._finish(action, start_ns, chunk.backward_weights(action))
        self._messages.settle()
        return torch.stack(self._losses).sum() if self._losses else None

    def _content(self, action: Action) -> tuple[Tensor | None, int]:
        """What `action` needs of another stage, waiting for it if need be, and when another rank sent it, ns, or 0."""
        letter = self._awaited(action)
        if letter is None:
            return None, 0
        if self._is_here(letter):
            return self._here.pop(letter), 0
        return self._messages.take(letter, self._step)

    def _forward(self, action: Action, start_ns: int, content: Tensor | None, inputs: Tensor | None,
                 targets: Tensor | None) -> None:
        m, chunk = action.micro_batch, self._chunks[action.stage]
        if content is None:
            assert inputs is not None
            content = inputs[m - chunk.first_micro_batch]
        else:
            content.requires_grad_()
        target = targets[m - chunk.first_micro_batch] if chunk.is_last and targets is not None else None
        output = self._memory.forward(action, content, lambda: chunk.forward(m, content, target))
        if chunk.is_last:
            self._losses.append(output.double())
        self._finish(action, start_ns, time.monotonic_ns())
        if not chunk.is_last:
            self._hand_on(Letter("F", action.stage + 1, m, action.way), output)

    def _finish(self, action: Action, start_ns: int, computed_ns: int) -> None:
        """Record an action that has been computed, after pacing it.

        A last backward under DDP returns later than its own gradients are ready, once they are averaged.
        What that took beyond the action itself is waiting for other copies, not work. On CUDA the device does both in
        one go, and the action's span holds them both.
        """
        start_ns, computed_ns = self._stopwatch.times(start_ns, computed_ns)
        returned_ns = time.monotonic_ns()
        end_ns = self._pacer.finish(action, start_ns, computed_ns)
        self._tracepoint.between(start_ns, end_ns, self._step)
        chunk = self._chunks[action.stage]
        if chunk.replica.beside and chunk.averages(action) and (averaged_ns := self._pacer.moment.meet(returned_ns)) > end_ns:
            self._add(Kind.WAIT, end_ns, averaged_ns, self._step, action.micro_batch, action.stage, NONE, NONE, NONE, "gradients",
                      chunk.replica.axis)
            end_ns = averaged_ns
        self._memory.after(action, end_ns)

    def _hand_on(self, letter: Letter, content: Tensor) -> None:
        if self._is_here(letter):
            self._here[letter] = content
        else:
            self._messages.send(letter, self._home(letter), content, self._step)

    def _awaited(self, action: Action) -> Letter | None:
        """What has to come from another stage before `action` can start."""
        chunk = self._chunks[action.stage]
        if action.do is Do.FORWARD and not chunk.is_first:
            return Letter("F", action.stage, action.micro_batch, action.way)
        if action.do in (Do.BACKWARD, Do.BACKWARD_INPUT) and not chunk.is_last:
            return Letter("B", action.stage, action.micro_batch, action.way)
        return None

    def _is_here(self, letter: Letter) -> bool:
        """Whether both the stage that it is from and the one that it is for lie on this rank."""
        return self._source(letter) == self._home(letter) == self._place

    def _home(self, letter: Letter) -> int:
        return self._homes[letter.stage, letter.micro_batch]

    def _source(self, letter: Letter) -> int:
        return self._homes[letter.stage + (-1 if letter.content == "F" else 1), letter.micro_batch]

    def _post(self, count: int) -> None:
        """Post the next `count` receives of the step, in the order in which they will be taken."""
        for letter in islice(self._receives, count):
            self._messages.post(letter, self._source(letter))
