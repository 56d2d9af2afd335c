"""A decoder-only transformer over bytes (GPT-2's shape: pre-norm blocks, learned positions; the head is untied)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.models.linear import Linear
from trainer.models.seeded import seeded
from trainer.spec import VOCABULARY, Gpt


class Embedding(nn.Module):
    """Bytes (samples, context) to vectors (samples, context, width), with the place of each added."""

    def __init__(self, context: int, width: int):
        super().__init__()
        self.byte = nn.Embedding(VOCABULARY, width)
        self.places: slice | Tensor = slice(context)  # in the whole context, of the vectors that come out
        self.position = nn.Embedding(context, width)
        nn.init.normal_(self.byte.weight, std=0.02)
        nn.init.normal_(self.position.weight, std=0.02)

    def forward(self, text: Tensor) -> Tensor:
        return self.byte(text) + self.position.weight[self.places]


class Attention(nn.Module):
    """Causal self-attention; keys, queries and values from one Linear.

    `attend` mixes values of one shape (samples, heads, context, head width) by queries and keys.
    """

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.head_width = width // heads
        self.attend: Callable[[Tensor, Tensor, Tensor], Tensor] = causal_attention
        self.projections = Linear(width, 3 * width)
        self.join = Linear(width, width)

    def forward(self, inputs: Tensor) -> Tensor:
        by_head = self.projections(inputs).unflatten(-1, (3, -1, self.head_width))
        queries, keys, values = by_head.permute(2, 0, 3, 1, 4)
        return self.join(self.attend(queries, keys, values).transpose(1, 2).flatten(2))


def causal_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)


class FeedForward(nn.Module):
    """`widen` to four times the width, GELU, `narrow` back: each vector by itself."""

    def __init__(self, widen: Linear, narrow: Linear):
        super().__init__()
        self.widen, self.narrow = widen, narrow

    def forward(self, inputs: Tensor) -> Tensor:
        return self.narrow(functional.gelu(self.widen(inputs)))


class Block(nn.Module):
    """Attention, then what `feed_forward` makes; each behind a norm, each added to its input."""

    def __init__(self, width: int, heads: int, feed_forward: Callable[[], nn.Module]):
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.feed_forward = feed_forward()

    def forward(self, inputs: Tensor) -> Tensor:
        inputs = inputs + self.attention(self.attention_norm(inputs))
        return inputs + self.feed_forward(self.feed_forward_norm(inputs))


class Head(nn.Module):
    """Vectors to one score for every byte that could come next."""

    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.scores = Linear(width, VOCABULARY)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.scores(self.norm(inputs))


class GptModel:
    """Layers are blocks; the first stage also has the embedding, the last one the head."""

    def __init__(self, spec: Gpt, seed: int, dtype: torch.dtype):
        self._spec, self._seed, self._dtype = spec, seed, dtype
        self.layers = spec.layers

    def stage(self, first: int, last: int) -> nn.Sequential:
        """Blocks `first` up to, not including, `last`, with what belongs before and behind them."""
        spec, parts = self._spec, []
        if first == 0:
            parts.append(seeded(self._seed, 0, self._dtype, lambda: Embedding(spec.context, spec.width)))
        for number in range(first, last):
            parts.append(seeded(self._seed, 1 + number, self._dtype, partial(self._block, number)))
        if last == self.layers:
            parts.append(seeded(self._seed, 1 + self.layers, self._dtype, lambda: Head(spec.width)))
        return nn.Sequential(*parts)

    def _block(self, number: int) -> Block:
        return Block(self._spec.width, self._spec.heads, partial(self._feed_forward, number))

    def _feed_forward(self, number: int) -> nn.Module:
        width = self._spec.width
        return FeedForward(Linear(width, 4 * width), Linear(4 * width, width))

    def hand_off_shape(self, samples: int) -> tuple[int, ...]:
        """Of the activations between two stages, and of their gradients."""
        return (samples, self._spec.context, self._spec.width)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy over all bytes; outputs (samples, context, 256), targets (samples, context)."""
        return functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())
