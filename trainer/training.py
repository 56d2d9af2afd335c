"""What a rank trains: its share of the data through its stage of the model, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch._dynamo  # an optimizer loads it at its first step, which takes two seconds: let the host of ranks do that once
import torch.distributed as dist
from torch import Tensor, nn

from trainer.data import data_of
from trainer.data.order import share
from trainer.emulate.pace import Pacer
from trainer.grid import Grid, averaging_axes
from trainer.models import DTYPES, model_of
from trainer.models.linear import WeightGradients, put_off_weights
from trainer.schedules import schedule_of
from trainer.spec import JobSpec, OptimizerSpec
from trainer.splits.data import Replica, prove_equal
from trainer.splits.messages import Messages
from trainer.splits.pipeline import PipelineStage, Place
from trainer.splits.run_clock import RunClock
from trainer.splits.stage import StageSplit
from trainer.trace.columns import Row
from trainer.trace.frame import NONE
from trainer.trace.kinds import Kind
from trainer.trace.writer import Writer


class Training:
    """One rank's part of a job. Made before the ranks meet; `connect` ties it to the others."""

    def __init__(self, spec: JobSpec, rank: int, device: torch.device):
        self.spec, self._device = spec, device
        grid = Grid.of(spec.grid)
        self._address, self._pipeline = grid.address(rank), grid.group("pp", rank)
        self._place = Place(self._address.pp, spec.grid.pp)
        self._model, self._data = model_of(spec), data_of(spec)
        self._actions = schedule_of(spec)[self._place.stage]
        self.module = self._build()
        self._split = StageSplit(spec, self._address)
        self._split.split(self.module)
        self._warm_up()

    def connect(self, groups: dict[str, dist.ProcessGroup], letters: dict[str, dist.ProcessGroup],
                clock: RunClock, writer: Writer) -> None:
        """`groups` by axis, `letters` for activations and gradients between stages."""
        self._writer = writer
        self._split.connect(groups, writer.add)
        averaging = averaging_axes(self.spec.grid)
        self._copies = groups.get(averaging)
        self._replica = Replica(self.module, self._copies, averaging)
        put_off = put_off_weights(self.module) if self.spec.schedule.split_backward else None
        self._stage = self._stage_of(self._replica, put_off, self._messages(letters, clock, writer.add), writer.add)
        self._optimizer = optimizer_of(self.spec.optimizer, self.module)

    def step(self, step: int) -> None:
        """One step with all its spans and counters. Every rank has to take it."""
        began_ns = time.monotonic_ns()
        inputs, targets = self._samples(step)
        loaded_ns = time.monotonic_ns()
        self._writer.add((Kind.DATA, began_ns, loaded_ns, step, NONE, NONE, NONE, NONE, NONE, self.spec.data, ""))
        self._split.begin(step)
        loss = self._stage.step(step, inputs, targets)
        averaged = None
        if loss is not None and self._copies is not None:
            averaged = dist.all_reduce(loss, group=self._copies, async_op=True)
        self._split.complete_gradients()
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        if averaged is not None:
            averaged.wait()
        ended_ns = time.monotonic_ns()
        # It starts where loading ends: spans of one lane do not overlap.
        self._writer.add((Kind.STEP, loaded_ns, ended_ns, step, NONE, NONE, NONE, NONE, NONE, f"step {step}", ""))
        if loss is not None and (self._address.dp, self._address.cp, self._address.tp) == (0, 0, 0):
            self._count(step, loss.item() / (self.spec.grid.dp * self.spec.grid.cp), ended_ns)

    def prove_equal(self) -> bool:
        """Whether there were copies to compare; UnequalCopies if they are not equal."""
        if self._copies is not None:
            prove_equal(dict(self.module.named_parameters()), self._copies)
        return self._split.prove_equal() or self._copies is not None

    def _count(self, step: int, loss: float, at_ns: int) -> None:
        self._writer.counter("loss", loss, step, at_ns)
        self._writer.counter("samples", self.spec.batch, step, at_ns)
        self._writer.counter("learning_rate", self._optimizer.param_groups[0]["lr"], step, at_ns)

    def _samples(self, step: int) -> tuple[Tensor | None, Tensor | None]:
        """What this stage needs of the step's samples, a first axis for micro-batches: inputs, targets."""
        if not (self._place.is_first or self._place.is_last):
            return None, None
        chosen = share(self._data.step(step), self.spec.grid.dp, self._address.dp, self.spec.schedule.micro_batches)
        inputs, targets = self._data.take(chosen.reshape(-1))
        shape = chosen.shape
        return (
            self._split.tokens(inputs).unflatten(0, shape).to(self._device) if self._place.is_first else None,
            self._split.tokens(targets).unflatten(0, shape).to(self._device) if self._place.is_last else None,
        )

    def _build(self) -> nn.Sequential:
        """This stage's whole layers, with the values that the unsplit model has there."""
        layers = self._model.layers // self.spec.grid.pp
        return self._model.stage(self._place.stage * layers, (self._place.stage + 1) * layers).to(self._device)

    def _messages(self, letters: dict[str, dist.ProcessGroup], clock: RunClock, add: Callable[[Row], None]) -> Messages:
        shape = self._split.hand_off_shape(self._model)
        return Messages(shape, DTYPES[self.spec.precision], self._device, clock, add, letters, self._pipeline, "pp")

    def _stage_of(self, replica: Replica, put_off: WeightGradients | None, messages: Messages,
                  add: Callable[[Row], None]) -> PipelineStage:
        return PipelineStage(self._actions, self._place, replica, self._split.loss(self._model), messages,
                             Pacer(self.spec.pace), add, put_off)

    def _warm_up(self) -> None:
        """Run a stage like ours once and throw it away, or the first step would show what torch does only once.

        It is a whole one: the ranks that share a stage have not met yet.
        """
        module = self._build()
        samples = self.spec.micro_batch_samples
        inputs, targets = (part.to(self._device) for part in self._data.take(self._data.step(0)[:samples]))
        if not self._place.is_first:
            inputs = torch.zeros(self._model.hand_off_shape(samples), dtype=DTYPES[self.spec.precision],
                                 device=self._device, requires_grad=True)
        put_off = put_off_weights(module) if self.spec.schedule.split_backward else None
        replica, optimizer = Replica(module), optimizer_of(self.spec.optimizer, module)
        output = replica.forward(inputs)
        if self._place.is_last:
            output = self._model.loss(output, targets)
        replica.backward(output, None if self._place.is_last else torch.zeros_like(output), last=True)
        if put_off is not None:
            replica.backward_weights(put_off.take(), last=True)
        optimizer.step()


def optimizer_of(spec: OptimizerSpec, module: nn.Module) -> torch.optim.Optimizer:
    kinds: dict[str, type[torch.optim.Optimizer]] = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}
    return kinds[spec.name](module.parameters(), lr=spec.learning_rate)  # type: ignore[call-arg]
