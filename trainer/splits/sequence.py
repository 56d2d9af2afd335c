"""Sequence (context) parallelism: every rank has its part of every sequence. Only attention looks beyond it, and a
router of experts, which counts who chose an expert earlier in the sequence.

Over a ring (Liu et al., "Ring Attention", 2023) queries stay and keys and values travel: while a rank works on one
part's, it sends them on and receives the next. No rank ever sees a whole row of scores, so each keeps a row's highest
score and sum so far, and rescales what it has when a higher one comes. By all-to-all (Jacobs et al.,
"DeepSpeed-Ulysses", 2023) ranks swap: from all heads of a part of the sequence to a part of the heads of all of it,
and back.

A causal mask makes parts unequal. In contiguous order the first rank's queries see one part, the last one's see
all. In zigzag order each rank has a piece from the front and the piece as far from the end, which evens it out.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from trainer.models.gpt import Attention, Embedding, causal_attention
from trainer.models.mixture import Router
from trainer.splits.all_to_all import exchange
from trainer.splits.peers import Peers
from trainer.splits.ring import Hop, Ring

KEYS_AND_VALUES, THEIR_GRADIENTS = 1, 2  # tags: both kinds of hop are under way at once


def places(order: str, context: int, parts: int) -> list[Tensor]:
    """For each part, where its tokens are in the whole sequence, ascending."""
    if order == "contiguous":
        return list(torch.arange(context).chunk(parts))
    pieces = torch.arange(context).chunk(2 * parts)
    return [torch.cat((pieces[part], pieces[-1 - part])) for part in range(parts)]


class RingAttention:
    """Causal attention of this rank's queries to all ranks' keys. `places` are every part's, by the function above."""

    def __init__(self, ring: Ring, places: list[Tensor]):
        self._ring, self._places = ring, places

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        # Sums over all parts want more than bfloat16's 8 bits, so what travels is float32 under autocast as well.
        dtype = torch.promote_types(queries.dtype, torch.float32)
        with torch.autocast(queries.device.type, enabled=False):
            mixed = _RingAttention.apply(queries.to(dtype), torch.stack((keys, values)).to(dtype), self)
        assert isinstance(mixed, Tensor)
        return mixed

    def forward(self, queries: Tensor, block: Tensor) -> tuple[Tensor, Tensor]:
        """What is mixed of the values, and the logarithm of each row's sum of exponentials.

        `block` is keys and values of one part, (2, samples, heads, tokens, head width); ours, to begin with. It has
        a visible key for each query, so `highest` is finite when other parts, hidden perhaps, come.
        """
        mixed = torch.zeros_like(queries)
        highest = queries.new_full(queries.shape[:-1], -math.inf)
        total = torch.zeros_like(highest)
        for turn in range(self._ring.peers.size):
            hop = self._pass_on(block, turn)
            part = self._part(turn)
            if self._sees(part):
                scores = self._scores(queries, block[0], part)
                risen = torch.maximum(highest, scores.amax(-1))
                shrunk, exponentials = (highest - risen).exp(), (scores - risen.unsqueeze(-1)).exp()
                total = total * shrunk + exponentials.sum(-1)
                mixed = mixed * shrunk.unsqueeze(-1) + exponentials @ block[1]
                highest = risen
            if hop is not None:
                block = hop.arrive()
        return mixed / total.unsqueeze(-1), highest + total.log()

    def backward(
        self, gradient: Tensor, queries: Tensor, block: Tensor, mixed: Tensor, log_total: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Gradients of our queries and of our keys and values.

        A part's gradient follows its keys and values around, grows at every rank, and comes home by a last hop.
        """
        scale = 1 / math.sqrt(queries.shape[-1])
        through_sum = (gradient * mixed).sum(-1, keepdim=True)
        of_queries, of_block = torch.zeros_like(queries), torch.zeros_like(block)
        for turn in range(self._ring.peers.size):
            hop = self._pass_on(block, turn)
            part = self._part(turn)
            if self._sees(part):
                keys, values = block
                weights = (self._scores(queries, keys, part) - log_total.unsqueeze(-1)).exp()
                of_scores = weights * (gradient @ values.mT - through_sum) * scale
                of_queries += of_scores @ keys
                of_block = of_block + torch.stack((of_scores.mT @ queries, weights.mT @ gradient))
            of_block = self._ring.hop(of_block, "gradients of keys and values", THEIR_GRADIENTS).arrive()
            if hop is not None:
                block = hop.arrive()
        return of_queries, of_block

    def _pass_on(self, block: Tensor, turn: int) -> Hop | None:
        """The hop that brings the next turn's block; None in the last turn, when all have been here."""
        last = turn == self._ring.peers.size - 1
        return None if last else self._ring.hop(block, "keys and values", KEYS_AND_VALUES)

    def _part(self, turn: int) -> int:
        """Whose keys and values are here in this turn."""
        return (self._ring.peers.place - turn) % self._ring.peers.size

    def _sees(self, part: int) -> bool:
        """Whether any of our queries may look at any key of `part`; if not, there is nothing to compute."""
        return bool(self._places[self._ring.peers.place][-1] >= self._places[part][0])

    def _scores(self, queries: Tensor, keys: Tensor, part: int) -> Tensor:
        hidden = self._places[self._ring.peers.place].unsqueeze(1) < self._places[part]
        scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
        return scores.masked_fill(hidden.to(scores.device), -math.inf)


class _RingAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, block: Tensor, attention: RingAttention) -> Tensor:
        mixed, log_total = attention.forward(queries, block)
        ctx.attention = attention
        ctx.save_for_backward(queries, block, mixed, log_total)
        return mixed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        return *ctx.attention.backward(gradients[0], *ctx.saved_tensors), None


class HeadExchange:
    """Causal attention by all-to-all: each rank attends for its part of the heads, over the whole sequence."""

    def __init__(self, peers: Peers):
        self._peers = peers

    def __call__(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        by_owner = torch.stack((queries, keys, values)).unflatten(2, (self._peers.size, -1)).movedim(2, 0)
        whole = exchange(by_owner, self._peers).movedim(0, 3).flatten(3, 4)  # parts of the sequence, one behind the other
        mixed = causal_attention(*whole)
        by_part = mixed.unflatten(2, (self._peers.size, -1)).movedim(2, 0)
        return exchange(by_part, self._peers).movedim(0, 1).flatten(1, 2)


class WholeSequence:
    """From this rank's choices of experts (samples, tokens, experts) to those of all tokens, in their order."""

    def __init__(self, peers: Peers, places: list[Tensor]):
        self._peers, self._in_order = peers, torch.cat(places).argsort()

    def __call__(self, chosen: Tensor) -> Tensor:
        return self._peers.all_gather(chosen.byte(), 1)[:, self._in_order].bool()


def split_sequence(module: nn.Module, mine: Tensor, attention: RingAttention | HeadExchange, whole: WholeSequence) -> None:
    """Let a GPT's stage work on the tokens at the places `mine`, and look at the others by `attention` and `whole` alone."""
    for part in module.modules():
        if isinstance(part, Embedding):
            part.places = mine.to(part.position.weight.device)
        elif isinstance(part, Router):
            part.places, part.whole = mine.to(part.scores.weight.device), whole
        elif isinstance(part, Attention):
            part.attend = attention
