"""Tensor parallelism: every rank holds a part of every weight matrix and computes its part of every layer.

Two matrices in a row need one exchange (Shoeybi et al., "Megatron-LM", 2019). The first is cut by columns: each rank
makes some of the features in between, whole ones, so the GELU or the attention of a head needs no other rank. The second
is cut by rows: it takes just those features, and the ranks' products add up to the layer's output, by an AllReduce.
Backward it is the mirror image, so a transformer layer (attention, feed-forward) has two AllReduces each way.

With `sequence_parallel` (Korthikanti et al., 2022) an AllReduce becomes its two halves. After the ReduceScatter
each rank keeps its stretch of the sequence, norms and sums work on that alone, and an AllGather brings the
whole sequence back before the next matrix: the same traffic, and a part of the activations' memory.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

from trainer.models.gpt import Attention, Embedding, FeedForward, Head
from trainer.models.linear import Linear
from trainer.splits.peers import Peers

SEQUENCE = 1  # the axis of (samples, context, width)


class Region:
    """Where every rank holds a part of the features. Activations enter whole and leave as a sum over the ranks."""

    def __init__(self, peers: Peers, sequence_parallel: bool):
        self.peers, self.sequence_parallel = peers, sequence_parallel

    def enter(self, inputs: Tensor) -> Tensor:
        return _apply(_GatherFromSequence if self.sequence_parallel else _CopyToRegion, inputs, self.peers)

    def leave(self, partial: Tensor) -> Tensor:
        return _apply(_ReduceScatterToSequence if self.sequence_parallel else _ReduceFromRegion, partial, self.peers)


class _CopyToRegion(torch.autograd.Function):
    """Every rank uses the same input, so its gradient is the sum of what each of them finds."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, peers: Peers) -> Tensor:
        ctx.peers = peers
        return inputs.view_as(inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.peers.all_reduce(gradients[0]), None


class _ReduceFromRegion(torch.autograd.Function):
    """The output is a sum, so every part of it has the sum's gradient."""

    @staticmethod
    def forward(ctx: Any, partial: Tensor, peers: Peers) -> Tensor:
        return peers.all_reduce(partial)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0], None


class _GatherFromSequence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, stretch: Tensor, peers: Peers) -> Tensor:
        ctx.peers = peers
        return peers.all_gather(stretch, SEQUENCE)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.peers.reduce_scatter(gradients[0], SEQUENCE), None


class _ReduceScatterToSequence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, partial: Tensor, peers: Peers) -> Tensor:
        ctx.peers = peers
        return peers.reduce_scatter(partial, SEQUENCE)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.peers.all_gather(gradients[0], SEQUENCE), None


def _apply(function: type[torch.autograd.Function], *given: Any) -> Tensor:
    output = function.apply(*given)
    assert isinstance(output, Tensor)
    return output


class ColumnLinear(Linear):
    """This rank's output features of `whole`, a Linear or several side by side. It may make several lists of features (queries,
    keys, values) one behind the other: each of its `blocks` is cut, so that a rank gets whole heads."""

    CUT = ("weight", "bias")

    def __init__(self, whole: Linear, region: Region, blocks: int = 1):
        nn.Module.__init__(self)  # not Linear's own, which would draw random values
        self.in_features, self.out_features = whole.in_features, whole.out_features // region.peers.size
        self.region = region
        self.weight = _mine(whole.weight, -2, region.peers, blocks)
        self.bias = _mine(whole.bias, -1, region.peers, blocks)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.product(self.region.enter(inputs), self.bias)


class RowLinear(Linear):
    """This rank's input features of `whole`, a Linear or several side by side. Every rank has the bias and adds it once,
    to the sum."""

    CUT = ("weight",)

    def __init__(self, whole: Linear, region: Region):
        nn.Module.__init__(self)
        self.in_features, self.out_features = whole.in_features // region.peers.size, whole.out_features
        self.region = region
        self.weight = _mine(whole.weight, -1, region.peers)
        self.bias = whole.bias

    def forward(self, inputs: Tensor) -> Tensor:
        return self.region.leave(self.product(inputs, None)) + self.bias

    def parameter_gradients(self, inputs: Tensor, gradient: Tensor) -> dict[Tensor, Tensor]:
        """The bias is no part of the product that can be put off."""
        return {self.weight: super().parameter_gradients(inputs, gradient)[self.weight]}


class VocabularyEmbedding(nn.Embedding):
    """This rank's rows of an embedding. A byte that another rank knows is zero here, and the sum is its vector."""

    CUT = ("weight",)

    def __init__(self, whole: nn.Embedding, region: Region):
        mine = _mine(whole.weight, 0, region.peers)
        super().__init__(mine.shape[0], mine.shape[1], _weight=mine)
        self.region = region

    def forward(self, input: Tensor) -> Tensor:
        row, known = _in_part(input, self.num_embeddings, self.region.peers)
        return self.region.leave(functional.embedding(row, self.weight) * known.unsqueeze(-1))


class VocabularyLoss:
    """Mean cross-entropy over all bytes. Each rank has the scores of its part of the vocabulary,
    (samples, context, 256 / ranks); what the ranks share is three numbers a byte."""

    def __init__(self, peers: Peers):
        self._peers = peers

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return _apply(_VocabularyCrossEntropy, outputs.flatten(0, 1), targets.flatten(), self._peers)


class _VocabularyCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, targets: Tensor, peers: Peers) -> Tensor:
        column, known = _in_part(targets, scores.shape[1], peers)
        highest = peers.all_reduce(scores.amax(1), dist.ReduceOp.MAX)
        scores = scores - highest.unsqueeze(1)  # or the exponential could overflow
        exponentials = scores.exp()
        of_target = scores.gather(1, column.unsqueeze(1)).squeeze(1) * known
        total, of_target = peers.all_reduce(torch.stack((exponentials.sum(1), of_target)))
        ctx.save_for_backward(exponentials / total.unsqueeze(1), column, known)
        return (total.log() - of_target).mean()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """Softmax less one at the target: every rank has all that its own scores need."""
        softmax, column, known = ctx.saved_tensors
        gradient = softmax.scatter_add(1, column.unsqueeze(1), -known.to(softmax.dtype).unsqueeze(1))
        return gradient * (gradients[0] / len(column)), None, None


def _in_part(numbers: Tensor, size: int, peers: Peers) -> tuple[Tensor, Tensor]:
    """Where the vocabulary's `numbers` are in this rank's part of `size`, and whether they are there at all."""
    place = numbers - peers.place * size
    known = (place >= 0) & (place < size)
    return place.where(known, torch.zeros_like(place)), known


def _mine(whole: Tensor, axis: int, peers: Peers, blocks: int = 1) -> nn.Parameter:
    """This rank's part of a parameter, cut along `axis`, in each of `blocks` equal stretches of it."""
    axis %= whole.dim()
    by_block = whole.detach().unflatten(axis, (blocks, -1))
    part = by_block.chunk(peers.size, axis + 1)[peers.place]
    return nn.Parameter(part.flatten(axis, axis + 1).clone())


def split_tensors(module: nn.Sequential, region: Region) -> None:
    """Replace what is cut in a GPT's stage by this rank's parts, taken from the values that are there."""
    for part in module.modules():
        if isinstance(part, Embedding):
            part.byte = VocabularyEmbedding(part.byte, region)
            if region.sequence_parallel:
                places = torch.arange(part.position.num_embeddings, device=part.position.weight.device)[part.places]
                part.places = places.chunk(region.peers.size)[region.peers.place]
        elif isinstance(part, Attention):
            part.projections, part.join = ColumnLinear(part.projections, region, blocks=3), RowLinear(part.join, region)
        elif isinstance(part, FeedForward):  # a block's, or all experts that this rank has in a layer
            part.widen, part.narrow = ColumnLinear(part.widen, region), RowLinear(part.narrow, region)
        elif isinstance(part, Head):
            part.scores = ColumnLinear(part.scores, region)


def uncut(module: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that every rank of the axis holds whole: norms, places, biases behind a sum."""
    cut = {
        f"{name}.{parameter}" for name, part in module.named_modules()
        if isinstance(part, (ColumnLinear, RowLinear, VocabularyEmbedding)) for parameter in part.CUT
    }
    return {name: parameter for name, parameter in module.named_parameters() if name not in cut}


def sum_gradients(parameters: list[nn.Parameter], peers: Peers) -> None:
    """Add up what each rank found from its stretch of the sequence, by one AllReduce for all `parameters`."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not gradients:
        return
    total = peers.all_reduce(torch.cat([gradient.flatten() for gradient in gradients]))
    for gradient, summed in zip(gradients, total.split([gradient.numel() for gradient in gradients]), strict=True):
        gradient.copy_(summed.view_as(gradient))
