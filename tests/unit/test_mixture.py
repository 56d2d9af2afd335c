"""The router and the mixture do what a plain loop over samples, tokens and experts does."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
from torch import Tensor, nn

from trainer.models import model_of
from trainer.models.linear import Linears
from trainer.models.mixture import Mixture
from trainer.models.seeded import seeded
from trainer.spec import JobSpec, Moe

WIDTH, EXPERTS, CONTEXT, SAMPLES = 8, 5, 11, 3


def mixture_of(top_k: int, capacity_factor: float, balance: float = 0.3) -> Mixture:
    spec = Moe(width=WIDTH, heads=2, context=CONTEXT, experts=EXPERTS, top_k=top_k, capacity_factor=capacity_factor,
               balance=balance)
    made = seeded(7, 0, torch.float64, lambda: Mixture(spec, layer=0))
    assert isinstance(made, Mixture)
    return made


def vectors() -> Tensor:
    return torch.randn(SAMPLES, CONTEXT, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(11))


def one_by_one(mixture: Mixture, inputs: Tensor, top_k: int, capacity: int) -> tuple[Tensor, list[int], list[int], Tensor]:
    """Output, load and dropped tokens of each expert, and the penalty, with nothing done side by side."""
    wide, narrow, router = mixture.experts.widen, mixture.experts.narrow, mixture.router.scores
    load, dropped, penalties, outputs = [0] * EXPERTS, [0] * EXPERTS, [], []
    for sample in inputs:
        taken, asked, shares_of_all = [0] * EXPERTS, [0] * EXPERTS, []
        for token in sample:
            scores = (router.weight @ token + router.bias).exp()
            shares = scores / scores.sum()
            best = sorted(range(EXPERTS), key=lambda expert: -shares[expert].item())[:top_k]
            blended = torch.zeros(WIDTH, dtype=torch.float64)
            for expert in best:
                asked[expert] += 1
                if taken[expert] == capacity:
                    dropped[expert] += 1
                    continue
                taken[expert] += 1
                hidden = nn.functional.gelu(wide.weight[expert] @ token + wide.bias[expert, 0])
                made = narrow.weight[expert] @ hidden + narrow.bias[expert, 0]
                blended = blended + made * (shares[expert] / (sum(shares[one] for one in best) if top_k > 1 else 1))
            outputs.append(blended)
            shares_of_all.append(shares)
        mean = torch.stack(shares_of_all).mean(0)
        penalties.append(EXPERTS * sum(asked[e] / (CONTEXT * top_k) * mean[e] for e in range(EXPERTS)))
        load = [before + now for before, now in zip(load, taken, strict=True)]
    return torch.stack(outputs).view_as(inputs), load, dropped, torch.stack(penalties).mean()


@pytest.mark.parametrize("capacity_factor", [0.4, 1.0, 5.0])
@pytest.mark.parametrize("top_k", [1, 2, 3])
def test_a_mixture_is_what_a_plain_loop_finds(top_k: int, capacity_factor: float) -> None:
    """Outputs, what is counted, and the gradients of a loss to which the penalty is plainly added."""
    mixture, plain = mixture_of(top_k, capacity_factor), mixture_of(top_k, capacity_factor)
    inputs, others = vectors().requires_grad_(), vectors().requires_grad_()
    capacity = mixture.router.capacity
    expected, load, dropped, penalty = one_by_one(plain, others, top_k, capacity)
    (expected.sin().sum() + 0.3 * penalty).backward()
    output = mixture(inputs)
    output.sin().sum().backward()
    torch.testing.assert_close(output, expected, rtol=1e-12, atol=1e-14)
    *tokens, counted = mixture.take().tolist()
    assert tokens == [*load, *dropped]
    assert counted == pytest.approx(penalty.item(), rel=1e-12)
    assert (sum(dropped) > 0) == (capacity_factor < 5)
    for one, other in zip([inputs, *mixture.parameters()], [others, *plain.parameters()], strict=True):
        assert one.grad is not None and other.grad is not None
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-10, atol=1e-14)


def test_what_finds_no_room_has_nothing_from_the_experts() -> None:
    mixture = mixture_of(top_k=1, capacity_factor=0.1)
    with torch.no_grad():
        mixture.router.scores.weight.zero_()
        mixture.router.scores.bias.copy_(torch.tensor([0.0, 9.0, 0.0, 0.0, 0.0]))
    output = mixture(vectors())
    assert bool((output[:, 0] != 0).all()), "the first token of each sample is in time"
    assert bool((output[:, 1:] == 0).all())
    output.sum().backward()
    *tokens, penalty = mixture.take().tolist()
    assert tokens == [0, SAMPLES, 0, 0, 0, 0, SAMPLES * (CONTEXT - 1), 0, 0, 0]
    share = math.exp(9) / (math.exp(9) + EXPERTS - 1)
    assert penalty == pytest.approx(EXPERTS * share), "near E, the most, if one gets all"


def test_samples_together_are_the_samples_one_by_one() -> None:
    together, apart = mixture_of(2, 0.6), mixture_of(2, 0.6)
    inputs = vectors()
    output = together(inputs)
    alone = torch.cat([apart(sample.unsqueeze(0)) for sample in inputs])
    torch.testing.assert_close(output, alone, rtol=1e-13, atol=1e-15)
    output.sum().backward()
    alone.sum().backward()
    torch.testing.assert_close(together.take()[:-1], apart.take()[:-1], rtol=0, atol=0)


def test_a_forward_that_is_computed_twice_is_counted_once() -> None:
    mixture, again = mixture_of(2, 1.0), mixture_of(2, 1.0)
    mixture(vectors()).sum().backward()
    checkpointed = torch.utils.checkpoint.checkpoint(again, vectors().requires_grad_(), use_reentrant=False)
    assert isinstance(checkpointed, Tensor)
    checkpointed.sum().backward()
    assert torch.equal(mixture.take(), again.take())


@pytest.mark.parametrize(("factor", "top_k", "context", "experts", "capacity"), [
    (1.25, 2, 32, 8, 10), (1.1, 2, 40, 8, 11), (1.0, 1, 10, 4, 3), (0.01, 1, 16, 8, 1), (64.0, 2, 32, 8, 32),
])
def test_the_room_of_an_expert(factor: float, top_k: int, context: int, experts: int, capacity: int) -> None:
    spec = Moe(capacity_factor=factor, top_k=top_k, context=context, experts=experts)
    assert spec.capacity == capacity == min(context, math.ceil(Fraction(str(factor)) * top_k * context / experts))


def test_linears_side_by_side_are_linears() -> None:
    several = seeded(1, 0, torch.float64, lambda: Linears(4, 3, 2))
    alone = seeded(1, 0, torch.float64, lambda: nn.ModuleList([nn.Linear(3, 2) for _ in range(4)]))
    assert isinstance(several, Linears) and isinstance(alone, nn.ModuleList)
    rows = torch.linspace(-1, 1, 4 * 5 * 3, dtype=torch.float64).view(4, 5, 3)
    expected = torch.stack([linear(each) for linear, each in zip(alone, rows, strict=True)])
    torch.testing.assert_close(several(rows), expected, rtol=1e-14, atol=1e-15)


def test_the_size_of_a_mixture() -> None:
    """Experts, and a router, in place of a feed-forward."""
    spec = Moe(layers=2, width=16, heads=2, context=12, experts=4)
    dense = JobSpec.model_validate({"model": {"name": "gpt", "layers": 2, "width": 16, "heads": 2, "context": 12}})
    counts = [sum(p.numel() for p in model_of(job).stage(0, 2).parameters()) for job in (JobSpec(model=spec), dense)]
    feed_forward, router = 8 * 16**2 + 5 * 16, 16 * 4 + 4
    assert counts[0] - counts[1] == 2 * (3 * feed_forward + router)
