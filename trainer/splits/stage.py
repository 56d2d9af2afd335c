"""How tensor and sequence parallelism divide the inside of a stage. Pipeline and data parallelism see a stage
that is smaller, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import torch.distributed as dist
from torch import Tensor, nn

from trainer.emulate.links import Links
from trainer.grid import Address
from trainer.models import Model
from trainer.spec import Gpt, JobSpec
from trainer.splits.data import prove_equal
from trainer.splits.peers import Peers
from trainer.splits.ring import Ring
from trainer.splits.sequence import HeadExchange, RingAttention, places, split_sequence
from trainer.splits.tensor import Region, VocabularyLoss, split_tensors, sum_gradients, uncut
from trainer.trace.columns import Row


class StageSplit:
    """One rank's part of its stages. Made before the ranks meet; `connect` ties it to its peers."""

    def __init__(self, spec: JobSpec, address: Address):
        self._spec = spec
        self._tensor, self._context = Peers(spec.grid.tp, address.tp), Peers(spec.grid.cp, address.cp)
        self._ring = Ring(self._context, "cp")
        self._parts = nn.ModuleList()  # what this rank has of each of its stages
        context = spec.model.context if isinstance(spec.model, Gpt) else 1
        self._places = places(spec.splits.context.order, context, spec.grid.cp)

    def split(self, module: nn.Sequential) -> None:
        """Keep this rank's part of a whole stage."""
        if self._context.size > 1:
            ring = self._spec.splits.context.attention == "ring"
            attention = RingAttention(self._ring, self._places) if ring else HeadExchange(self._context)
            split_sequence(module, self._places[self._context.place], attention)
        if self._tensor.size > 1:
            split_tensors(module, Region(self._tensor, self._spec.splits.tensor.sequence_parallel))
        self._parts.append(module)

    def connect(self, groups: dict[str, dist.ProcessGroup], add: Callable[[Row], None], links: Links | None) -> None:
        """`groups` by axis."""
        self._tensor.group, self._context.group = groups.get("tp"), groups.get("cp")
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

    def complete_gradients(self) -> None:
        """After the last backward: sequence parallel ranks have seen only their stretch in what they all hold."""
        if self._tensor.size > 1 and self._spec.splits.tensor.sequence_parallel:
            sum_gradients(list(uncut(self._parts).values()), self._tensor)

    def prove_equal(self) -> bool:
        """Whether there was something held by several ranks; UnequalCopies if they are not equal."""
        if self._tensor.group is None:
            return False
        prove_equal(uncut(self._parts), self._tensor.group)
        return True
