"""What a rank trains: its share of the data through its stages of the model, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch._dynamo  # an optimizer loads it at its first step, which takes two seconds: let the host of ranks do that once
import torch.distributed as dist
from torch import Tensor, nn

from trainer.checkpoints import Checkpoints
from trainer.data import data_of
from trainer.data.order import share
from trainer.emulate.links import Links
from trainer.emulate.moment import Moment
from trainer.emulate.pace import Pacer
from trainer.grid import Grid, averaging_axes, holds_whole_gradient, norm_is_told, speaks_for_its_stages
from trainer.models import DTYPES, model_of
from trainer.models.checkpointed import Checkpointed
from trainer.probes.stopwatch import Stopwatch
from trainer.recipe import Recipe, optimizer_of
from trainer.schedules import schedule_of
from trainer.schedules.actions import Do, homes
from trainer.schedules.cuts import layers_of
from trainer.spec import JobSpec
from trainer.splits.chunk import Chunk
from trainer.splits.data import Alone, Replica, prove_equal
from trainer.splits.data_split import copies_of
from trainer.splits.footprint import StageMemory
from trainer.splits.messages import Messages
from trainer.splits.norm import GradientNorm
from trainer.splits.pipeline import PipelineRank
from trainer.splits.run_clock import RunClock
from trainer.splits.stage import StageSplit
from trainer.trace.frame import NONE
from trainer.trace.kinds import Kind
from trainer.trace.row import Add
from trainer.trace.writer import Writer


class Training:
    """One rank's part of a job. Made before the ranks meet; `connect` ties it to the others."""

    def __init__(self, spec: JobSpec, rank: int, device: torch.device):
        self.spec, self._device = spec, device
        grid = Grid.of(spec.grid)
        self._address, self._pipeline = grid.address(rank), grid.group("pp", rank)
        self._model, self._data = model_of(spec), data_of(spec)
        self._copy = self._address.dp * spec.grid.ep + self._address.ep
        schedule = schedule_of(spec)
        self._actions, self._homes = schedule[self._address.pp], homes(schedule)
        self._layers = layers_of(spec)  # of each stage
        self._stages = sorted({action.stage for action in self._actions})
        self._ends = self._micro_batches(0), self._micro_batches(len(self._layers) - 1)
        self._split = StageSplit(spec, self._address)
        self.modules = nn.ModuleDict()
        for stage in self._stages:
            # What is told to DDP of a stage's module, such as whose experts are whose, has to be told to this very module.
            self.modules[str(stage)] = module = self._keeping(self._build(stage))
            self._split.split(stage, module)
            self._warm_up(stage)

    def connect(self, groups: dict[str, dist.ProcessGroup], letters: dict[str, dist.ProcessGroup],
                clock: RunClock, writer: Writer, moment: Moment, links: Links | None, slowness: Callable[[int], float]) -> None:
        """`groups` by axis, `letters` for activations and gradients between stages; `links` where they are modelled;
        `slowness` of this rank by step."""
        self._writer, self._moment = writer, moment
        self._split.connect(groups, writer.add, links)
        axis = averaging_axes(self.spec)
        self.copies = copies_of(self.spec.splits.data, self.modules, groups.get(axis), axis, clock, writer.add, links)
        loss = self._split.loss(self._model)
        chunks = {stage: self._chunk(stage, self.copies.replicas[str(stage)], loss) for stage in self._stages}
        self.letters = messages = self._messages(letters, clock, writer.add, links)
        self.memory = StageMemory(self.modules, chunks, self._fed_here(), messages, writer.counter, self._device)
        self._pacer = Pacer(self.spec, moment, slowness)
        self._rank = PipelineRank(self._actions, chunks, self._homes, self._address.pp, messages, self._pacer,
                                  Stopwatch(self._device), self.memory, writer)
        self._recipe = Recipe(self.spec, list(self.copies.owned.values()), self._gradient_norm())

    def step(self, step: int) -> None:
        """One step with all its spans and counters. Every rank has to take it."""
        self._pacer.begin_step(step, self._actions[0])
        began_ns, really_began_ns = self._moment.ns, time.monotonic_ns()
        inputs, targets = self._samples(step)
        loaded_ns = began_ns + time.monotonic_ns() - really_began_ns
        self._moment.reach(loaded_ns)
        self._writer.add(Kind.DATA, began_ns, loaded_ns, step, NONE, NONE, NONE, NONE, NONE, self.spec.data, "")
        self._split.begin(step)
        loss = self._rank.step(step, inputs, targets)
        averaged = None
        if loss is not None and self.copies.group is not None:
            averaged = dist.all_reduce(loss, group=self.copies.group, async_op=True)
        self._complete_gradients(step)
        norm = self._recipe.clip()
        self._meet_really()
        self._recipe.step(step)
        self.copies.spread(step)
        self.memory.end_step()
        if averaged is not None:
            averaged.wait()
            self._moment.meet(time.monotonic_ns())
        self._meet_really()
        ended_ns = self._moment.ns
        # It starts where loading ends: spans of one lane do not overlap.
        self._writer.add(Kind.STEP, loaded_ns, ended_ns, step, NONE, NONE, NONE, NONE, NONE, f"step {step}", "")
        if not speaks_for_its_stages(self.spec, self._address):
            return
        self._split.count(self._writer.counter, step, ended_ns)
        if loss is not None:
            self._count(step, loss.item() / self.spec.averaging_ranks, norm, ended_ns)

    def _meet_really(self) -> None:
        """What ranks say to each other at a step's end takes its real time, where links are real."""
        spec = self.spec
        if spec.links.kind == "real" and (spec.ranks > spec.grid.pp or spec.ways == 2 or norm_is_told(spec)):
            self._moment.catch_up()

    def _complete_gradients(self, step: int) -> None:
        """After the last backward; then what `copies` own has the gradients of the whole batch."""
        self.copies.complete_gradients(step)
        self._split.complete_gradients(self.copies.owned)

    def checkpoints(self, rank: int, folder: Path) -> Checkpoints:
        """Of what this rank has once it is connected: its pieces, or its stages whole."""
        parameters = self.copies.owned if self.copies.in_pieces else dict(self.modules.named_parameters())
        return Checkpoints(self.spec, rank, folder, parameters, self._recipe.optimizer,
                           lambda text, step: self._writer.mark("checkpoint", text, step))

    def prove_equal(self) -> bool:
        """Whether there were copies to compare; UnequalCopies if they are not equal."""
        whole = self.copies.whole()
        if self.copies.group is not None:
            prove_equal(self._split.in_all_copies(whole), self.copies.group)
        return self._split.prove_equal(whole) or self.copies.group is not None

    def _count(self, step: int, loss: float, norm: Tensor | None, at_ns: int) -> None:
        self._writer.counter("loss", loss, step, at_ns)
        self._writer.counter("samples", self.spec.batch, step, at_ns)
        self._writer.counter("learning_rate", self._recipe.rate(step), step, at_ns)
        if norm is not None:
            self._writer.counter("grad_norm", norm.item(), step, at_ns)

    def _gradient_norm(self) -> GradientNorm | None:
        """Where a rank holds the whole gradient its length costs no message. Else it makes all ranks wait for each
        other at the end of a step, which is only done to clip."""
        spec, owned, in_pieces = self.spec, self.copies.owned, self.copies.in_pieces
        if holds_whole_gradient(spec):
            return GradientNorm(list(owned.values()), None, self._device)
        if not spec.optimizer.clip_norm:
            return None
        return GradientNorm(self._split.counted(owned, in_pieces), dist.group.WORLD, self._device)

    def _samples(self, step: int) -> tuple[Tensor | None, Tensor | None]:
        """What this rank's stages need of the step's samples, a first axis for micro-batches: inputs, targets."""
        if not any(self._ends):
            return None, None
        chosen = share(self._data.step(step), self.spec.grid.copies, self._copy, self.spec.schedule.micro_batches)
        first, last = self._ends
        inputs, targets = self._taken(chosen, first)
        if last != first:
            _, targets = self._taken(chosen, last)
        return inputs, targets

    def _taken(self, chosen: np.ndarray, micro_batches: range) -> tuple[Tensor | None, Tensor | None]:
        """Inputs and targets of these of the chosen micro-batches."""
        if not micro_batches:
            return None, None
        mine = chosen[micro_batches.start:micro_batches.stop]
        inputs, targets = (self._split.tokens(part).unflatten(0, mine.shape).to(self._device)
                           for part in self._data.take(mine.reshape(-1)))
        return inputs, targets

    def _micro_batches(self, stage: int) -> range:
        """Those that this rank does in a stage: none, all, or half of them where they go both ways."""
        numbers = [action.micro_batch for action in self._actions if action.stage == stage]
        return range(min(numbers), max(numbers) + 1) if numbers else range(0)

    def _fed_here(self) -> set[int]:
        """The stages whose inputs come from another stage on this rank."""
        return {stage for stage in self._stages
                if self._homes.get((stage - 1, self._micro_batches(stage).start)) == self._address.pp}

    def _build(self, stage: int) -> nn.Sequential:
        """The stage's whole layers, with the values that the unsplit model has there."""
        first = sum(self._layers[:stage])
        return self._model.stage(first, first + self._layers[stage]).to(self._device)

    def _keeping(self, module: nn.Sequential) -> nn.Sequential:
        """The stage, which keeps of its activations what the job says."""
        return Checkpointed(*module) if self.spec.checkpointing == "layer" else module

    def _chunk(self, stage: int, replica: Replica, loss: Callable[[Tensor, Tensor], Tensor]) -> Chunk:
        return Chunk(stage, len(self._layers), self._actions, replica, loss, mixed=self.spec.precision == "bf16")

    def _messages(self, letters: dict[str, dist.ProcessGroup], clock: RunClock, add: Add,
                  links: Links | None) -> Messages:
        shape = self._split.hand_off_shape(self._model)
        return Messages(shape, DTYPES[self.spec.precision], self._device, clock, add, letters, self._pipeline, "pp",
                        links)

    def _warm_up(self, stage: int) -> None:
        """Run a stage like ours once and throw it away, or the first step would show what torch does only once.

        It is a whole one: the ranks that share a stage have not met yet.
        """
        module = self._keeping(self._build(stage))
        chunk = self._chunk(stage, Alone(module), self._model.loss)
        samples = self.spec.micro_batch_samples
        inputs, targets = (part.to(self._device) for part in self._data.take(self._data.step(0)[:samples]))
        shape, dtype = self._model.hand_off_shape(samples), DTYPES[self.spec.precision]
        if not chunk.is_first:
            inputs = torch.zeros(shape, dtype=dtype, device=self._device, requires_grad=True)
        gradient = None if chunk.is_last else torch.zeros(shape, dtype=dtype, device=self._device)
        optimizer = optimizer_of(self.spec.optimizer, module.parameters())
        for action in self._actions:  # the way of the stage's first micro-batch there and back
            if (action.stage, action.micro_batch) != (stage, chunk.first_micro_batch):
                continue
            match action.do:
                case Do.FORWARD:
                    chunk.forward(action.micro_batch, inputs, targets)
                case Do.BACKWARD | Do.BACKWARD_INPUT:
                    chunk.backward(action, gradient)
                case Do.BACKWARD_WEIGHT:
                    chunk.backward_weights(action)
        optimizer.step()
