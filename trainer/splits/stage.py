"""How expert, tensor and sequence parallelism divide the inside of a stage. Pipeline and data parallelism see a stage
that is smaller, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch.distributed as dist
from torch import Tensor, nn

from trainer.emulate.links import Links
from trainer.grid import Address, first_copy
from trainer.models import Model
from trainer.spec import Gpt, JobSpec
from trainer.splits.data import prove_equal
from trainer.splits.expert import ExpertSplit, expert_parameters
from trainer.splits.peers import Peers
from trainer.splits.ring import Ring
from trainer.splits.sequence import HeadExchange, RingAttention, WholeSequence, places, split_sequence
from trainer.splits.tensor import Region, VocabularyLoss, split_tensors, sum_gradients, uncut
from trainer.trace.row import Add


class StageSplit:
    """One rank's part of its stages. Made before the ranks meet; `connect` ties it to its peers."""

    def __init__(self, spec: JobSpec, address: Address):
        self._spec, self._address = spec, address
        self._tensor, self._context = Peers(spec.grid.tp, address.tp), Peers(spec.grid.cp, address.cp)
        self._experts = ExpertSplit(spec, address)
        self._ring = Ring(self._context, "cp")
        self._parts = nn.ModuleDict()  # what this rank has of each of its stages
        context = spec.model.context if isinstance(spec.model, Gpt) else 1
        self._places = places(spec.splits.context.order, context, spec.grid.cp)

    def split(self, stage: int, module: nn.Sequential) -> None:
        """Keep this rank's part of a whole stage."""
        self._experts.split(module)
        if self._context.size > 1:
            ring = self._spec.splits.context.attention == "ring"
            attention = RingAttention(self._ring, self._places) if ring else HeadExchange(self._context)
            whole = WholeSequence(self._context, self._places)
            split_sequence(module, self._places[self._context.place], attention, whole)
        if self._tensor.size > 1:
            split_tensors(module, Region(self._tensor, self._spec.splits.tensor.sequence_parallel))
        self._parts[str(stage)] = module

    def connect(self, groups: dict[str, dist.ProcessGroup], add: Add, links: Links | None) -> None:
        """`groups` by axis."""
        self._tensor.group, self._context.group = groups.get("tp"), groups.get("cp")
        self._experts.connect(groups)
        if self._context.size > 1:
            self._ring.connect(add, links)

    def begin(self, step: int) -> None:
        self._ring.step = step

    def tokens(self, samples: Tensor) -> Tensor:
        """This rank's tokens of whole sequences, their last axis."""
        return samples if self._context.size == 1 else samples[..., self._places[self._context.place]]

    def hand_off_shape(self, model: Model) -> tuple[int, ...]:
        """Of what this rank sends to the next stage."""
        samples, *rest = model.hand_off_shape(self._spec.micro_batch_samples)
        if self._spec.sequence_parts > 1:
            rest[0] //= self._spec.sequence_parts
        return samples, *rest

    def loss(self, model: Model) -> Callable[[Tensor, Tensor], Tensor]:
        return model.loss if self._tensor.size == 1 else VocabularyLoss(self._tensor)

    def complete_gradients(self, parameters: Mapping[str, nn.Parameter]) -> None:
        """After the last backward: sequence parallel ranks have seen only their stretch in what they all hold, and
        experts the samples of those ranks alone that share them.

        `parameters` are this rank's, or the pieces of them that it updates, by name.
        """
        self._experts.complete_gradients()
        if self._tensor.size > 1 and self._spec.splits.tensor.sequence_parallel:
            sum_gradients([parameters[name] for name in uncut(self._parts) if name in parameters], self._tensor)

    def count(self, counter: Callable[[str, float, int, int], None], step: int, at_ns: int) -> None:
        """What all ranks of the same stages counted in `step`; one of them records it."""
        self._experts.count(counter, step, at_ns)

    def counted(self, owned: Mapping[str, nn.Parameter], in_pieces: bool) -> list[nn.Parameter]:
        """Those of `owned` whose gradients this rank counts in the whole model's: of several ranks that hold a number alike
        the first one counts it. `in_pieces`: no two copies own the same, so all count what they own."""
        experts = expert_parameters(self._parts) if self._spec.grid.ep > 1 else {}
        alike = uncut(self._parts) if self._tensor.place else {}
        counts_experts = self._address == first_copy(self._spec, self._address)
        counts = in_pieces or (counts_experts and self._address.ep == 0)
        return [
            parameter for name, parameter in owned.items()
            if name not in alike and (counts_experts if name in experts else counts)
        ]

    def in_all_copies(self, parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """What every copy of the model has at this rank's place: all but the experts that copies share."""
        shared = expert_parameters(self._parts) if self._spec.grid.ep > 1 else {}
        return {name: parameter for name, parameter in parameters.items() if name not in shared}

    def prove_equal(self, parameters: Mapping[str, Tensor]) -> bool:
        """Whether there was something held by several ranks; UnequalCopies if they are not equal."""
        experts = self._experts.prove_equal(self._parts)
        if self._tensor.group is None:
            return experts
        prove_equal({name: parameters[name] for name in uncut(self._parts)}, self._tensor.group)
        return True
