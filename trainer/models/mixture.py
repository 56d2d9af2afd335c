"""A GPT whose feed-forwards are mixtures of experts: a router sends every token to a few of many feed-forwards.

The router's scores go through a softmax, the highest few are kept, and the outputs of those experts are blended by score
(Shazeer et al., "Outrageously Large Neural Networks", 2017). An expert has room for so many tokens of each sample and
no more: who comes later, in the order of tokens, is dropped there and has only what goes around the experts. A penalty
keeps the router from favourites (Fedus et al., "Switch Transformers", 2021).

Room and penalty are a sample's own. So they do not depend on which samples are computed together, and a batch that is
cut into copies and micro-batches drops the same tokens as the whole one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from trainer.models.gpt import FeedForward, GptModel
from trainer.models.linear import Linear, Linears
from trainer.spec import Moe


class Routing(NamedTuple):
    """Where the tokens of some samples go. `tokens` and `slots` say, one for each choice that found room, which token is
    to be in which slot of the experts, and `weights` how much of the blend comes from there."""

    tokens: Tensor
    slots: Tensor
    weights: Tensor
    slots_an_expert: int
    penalty: Tensor
    load: Tensor  # for each expert, the tokens that it works on …
    dropped: Tensor  # … and those that the router chose it for but that found no room


class Router(nn.Module):
    """One Linear: a score for every expert from a token's vector."""

    def __init__(self, spec: Moe):
        super().__init__()
        self.top_k, self.capacity = spec.top_k, spec.capacity
        self.scores = Linear(spec.width, spec.experts)
        self.places: slice | Tensor = slice(None)  # of the tokens that are here, in their whole sequence
        self.whole: Callable[[Tensor], Tensor] = as_it_is  # from choices of the tokens here to those of the whole sequence

    def forward(self, inputs: Tensor) -> Routing:
        """Of vectors (samples, tokens, width)."""
        shares = self.scores(inputs).softmax(-1)
        highest, choices = shares.topk(self.top_k, -1)
        chosen = torch.zeros_like(shares, dtype=torch.bool).scatter(-1, choices, True)
        by_all = self.whole(chosen)
        before = (by_all.cumsum(1) - 1)[:, self.places]  # how many tokens of the sample chose the expert earlier
        kept = chosen & (before < self.capacity)
        room = min(self.capacity, inputs.shape[1])
        sample, token, expert = kept.nonzero(as_tuple=True)
        slot = (kept.cumsum(1) - 1)[sample, token, expert]
        # One choice alone would always be blended by 1, whatever its score, and the router would not learn from it.
        weights = shares if self.top_k == 1 else shares / highest.sum(-1, keepdim=True)
        return Routing(
            tokens=sample * inputs.shape[1] + token,
            slots=(expert * len(inputs) + sample) * room + slot,
            weights=weights[sample, token, expert],
            slots_an_expert=len(inputs) * room,
            penalty=balancing_penalty(shares, by_all, self.top_k),
            load=kept.sum((0, 1)),
            dropped=(chosen & ~kept).sum((0, 1)),
        )


def balancing_penalty(shares: Tensor, chosen: Tensor, top_k: int) -> Tensor:
    """E · Σ f·P over E experts, the mean over samples: f is an expert's share of a sample's choices, P its mean share of
    the softmax. 1 if all get the same, E if one gets all. Only P has a gradient (Fedus et al., 2021, equation 4)."""
    experts = shares.shape[-1]
    of_choices = chosen.sum(1).to(shares.dtype) / (chosen.shape[1] * top_k)
    return experts * (of_choices * shares.mean(1)).sum(-1).mean()


class Mixture(nn.Module):
    """What a block of layer `layer` has for a feed-forward; (samples, tokens, width) to the same."""

    def __init__(self, spec: Moe, layer: int):
        super().__init__()
        self.layer, self.balance = layer, spec.balance
        self.part_of_loss = 1.0  # what the outputs' loss is of the loss that is trained: micro-batches share it
        self.send_out: Callable[[Tensor], Tensor] = as_it_is  # slots (experts, slots, width) to where the experts are …
        self.bring_back: Callable[[Tensor], Tensor] = as_it_is  # … and what they made of them back
        self.router = Router(spec)
        self.experts = FeedForward(Linears(spec.experts, spec.width, 4 * spec.width),
                                   Linears(spec.experts, 4 * spec.width, spec.width))
        self._experts_in_all = spec.experts
        self._tally: Tensor | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        routing, vectors = self.router(inputs), inputs.flatten(0, 1)
        slots = vectors.new_zeros(self._experts_in_all * routing.slots_an_expert, vectors.shape[1])
        slots = slots.index_copy(0, routing.slots, vectors[routing.tokens])
        made = self.bring_back(self.experts(self.send_out(slots.unflatten(0, (self._experts_in_all, -1)))))
        weighted = made.flatten(0, 1)[routing.slots] * routing.weights.unsqueeze(1)
        blended = weighted.new_zeros(vectors.shape).index_put((routing.tokens,), weighted, accumulate=True)
        figures = torch.cat((routing.load, routing.dropped, routing.penalty.detach().double().unsqueeze(0) * self.part_of_loss))
        output = _WithPenalty.apply(blended.view_as(inputs), routing.penalty, figures, self)
        assert isinstance(output, Tensor)
        return output

    def count(self, figures: Tensor) -> None:
        self._tally = figures if self._tally is None else self._tally + figures

    def take(self) -> Tensor:
        """Of all micro-batches since the last call: each expert's load, then each expert's dropped tokens, then the penalty."""
        assert self._tally is not None, "no backward has come by"
        tally, self._tally = self._tally, None
        return tally


class _WithPenalty(torch.autograd.Function):
    """The outputs as they are. Backward, the penalty gets its gradient here: its stage may know nothing of the loss.

    That is also when it is counted, for each micro-batch comes back once, even if its forward is computed twice.
    """

    @staticmethod
    def forward(ctx: Any, outputs: Tensor, penalty: Tensor, figures: Tensor, mixture: Mixture) -> Tensor:
        ctx.save_for_backward(penalty, figures)
        ctx.mixture = mixture
        return outputs.view_as(outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        penalty, figures = ctx.saved_tensors
        ctx.mixture.count(figures)
        return gradients[0], torch.full_like(penalty, ctx.mixture.balance * ctx.mixture.part_of_loss), None, None


def as_it_is(tensor: Tensor) -> Tensor:
    return tensor


class MixtureModel(GptModel):
    """A GPT with a mixture in every block. Its loss is the cross-entropy alone; backward adds the penalties' gradients."""

    def __init__(self, spec: Moe, seed: int, dtype: torch.dtype):
        super().__init__(spec, seed, dtype)
        self._mixture = spec

    def _feed_forward(self, number: int) -> nn.Module:
        return Mixture(self._mixture, number)
