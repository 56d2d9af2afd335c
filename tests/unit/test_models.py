"""Models and data: the right size, and the same values on whichever rank they are made."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DistributedSampler

from trainer.data import data_of
from trainer.data.order import endless_order, share
from trainer.data.text import MOST_BYTES
from trainer.models import model_of
from trainer.models.linear import Linear, put_off_weights
from trainer.spec import Gpt, GridSpec, JobSpec, Perceptron
from trainer.splits.data import Alone

SMALL_GPT = Gpt(layers=4, width=16, heads=2, context=12)
MODELS = [pytest.param(Perceptron(hidden_layers=3), id="perceptron"), pytest.param(SMALL_GPT, id="gpt")]


def parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_the_digit_reader_has_13002_parameters() -> None:
    model = model_of(JobSpec(model=Perceptron()))
    module = model.stage(0, model.layers)
    assert parameters(module) == 13_002
    assert [tuple(p.shape) for p in module.parameters()] == [(16, 784), (16,), (16, 16), (16,), (10, 16), (10,)]


def test_the_size_of_the_gpt() -> None:
    width, context, layers = SMALL_GPT.width, SMALL_GPT.context, SMALL_GPT.layers
    block = 12 * width**2 + 13 * width  # attention 4 w² + 4 w, feed-forward 8 w² + 5 w, two norms 4 w
    expected = (256 + context) * width + layers * block + 2 * width + 256 * width + 256
    model = model_of(JobSpec(model=SMALL_GPT))
    assert parameters(model.stage(0, layers)) == expected


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("model_spec", MODELS)
def test_stages_together_are_the_unsplit_model(model_spec: Perceptron | Gpt, precision: str) -> None:
    spec = JobSpec.model_validate({"model": model_spec, "precision": precision, "seed": 5, "batch": 8})
    model = model_of(spec)
    whole = model.stage(0, model.layers)
    torch.rand(3)  # whoever draws from the global generator in between changes nothing
    stages = [model.stage(first, first + 2) for first in (0, 2)]
    for one, other in zip(whole.parameters(), [p for stage in stages for p in stage.parameters()], strict=True):
        assert torch.equal(one, other)
    inputs, _ = data_of(spec).take(data_of(spec).step(0))
    between = stages[0](inputs)
    assert between.shape == model.hand_off_shape(8)
    assert between.dtype == {"float32": torch.float32, "float64": torch.float64}[precision]
    assert torch.equal(whole(inputs), stages[1](between))


@pytest.mark.parametrize("model_spec", MODELS)
def test_both_precisions_start_from_the_same_values_and_another_seed_from_others(model_spec: Perceptron | Gpt) -> None:
    def values(precision: str, seed: int) -> list[torch.Tensor]:
        spec = JobSpec.model_validate({"model": model_spec, "precision": precision, "seed": seed})
        return [p.detach().double() for p in model_of(spec).stage(0, 1).parameters()]

    assert all(map(torch.equal, values("float32", 1), values("float64", 1)))
    assert not torch.equal(values("float32", 1)[0], values("float32", 2)[0])


def test_the_gpt_looks_only_back() -> None:
    spec = JobSpec(model=SMALL_GPT, precision="float64")
    module = model_of(spec).stage(0, SMALL_GPT.layers)
    text = torch.randint(0, 256, (1, 12))
    changed = text.clone()
    changed[0, 7] = (changed[0, 7] + 1) % 256
    before, after = module(text), module(changed)
    assert torch.equal(before[0, :7], after[0, :7])
    assert not torch.allclose(before[0, 7:], after[0, 7:])


@pytest.mark.parametrize("model_spec", MODELS)
def test_weight_gradients_that_were_put_off_are_the_same(model_spec: Perceptron | Gpt) -> None:
    spec = JobSpec(model=model_spec, precision="float64", batch=6)
    model = model_of(spec)
    inputs, targets = data_of(spec).take(data_of(spec).step(0))
    at_once, later = model.stage(0, model.layers), model.stage(0, model.layers)
    put_off = put_off_weights(later)
    model.loss(at_once(inputs), targets).backward()
    replica = Alone(later)
    replica.backward(model.loss(replica.forward(inputs), targets), None, average=True)
    linears = [part for part in later.modules() if isinstance(part, Linear)]
    assert all(linear.weight.grad is None for linear in linears), "the first half leaves them out"
    replica.backward_weights(put_off.take(), average=True)
    for one, other in zip(at_once.parameters(), later.parameters(), strict=True):
        assert one.grad is not None and other.grad is not None
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-12, atol=1e-15)
    assert put_off.take() == []


@pytest.mark.parametrize("model_spec", [Perceptron(), SMALL_GPT])
def test_shares_of_all_copies_make_up_the_batch(model_spec: Perceptron | Gpt) -> None:
    spec = JobSpec(model=model_spec, grid=GridSpec(dp=3), batch=24)
    samples = data_of(spec).step(7)
    rows = [share(samples, copies=3, copy=copy, micro_batches=4) for copy in range(3)]
    assert {row.shape for row in rows} == {(4, 2)}
    assert sorted(np.concatenate(rows, axis=None)) == sorted(samples)
    assert np.array_equal(data_of(spec).step(7), samples), "every rank finds the same"
    assert not np.array_equal(data_of(spec).step(8), samples)
    assert not np.array_equal(data_of(spec.model_copy(update={"seed": 1})).step(7), samples)


@pytest.mark.parametrize("copies", [1, 2, 4])
def test_shares_are_those_of_torchs_distributed_sampler(copies: int) -> None:
    samples = data_of(JobSpec(grid=GridSpec(dp=copies), batch=24)).step(3)
    for copy in range(copies):
        sampler = DistributedSampler(samples.tolist(), num_replicas=copies, rank=copy, shuffle=False)  # type: ignore[arg-type]
        dealt = samples[list(sampler)]
        assert np.array_equal(share(samples, copies, copy, micro_batches=2).reshape(-1), dealt)


def test_an_order_takes_every_sample_once_a_round() -> None:
    places = np.concatenate([endless_order(10, seed=4, start=start, length=4) for start in range(0, 20, 4)])
    assert sorted(places[:10]) == sorted(places[10:]) == list(range(10))
    assert not np.array_equal(places[:10], places[10:])


def test_digits_are_real_and_normalised() -> None:
    data = data_of(JobSpec(model=Perceptron(), batch=1797, precision="float64"))
    pixels, digits = data.take(data.step(0))
    assert pixels.shape == (1797, 784)
    assert (pixels.mean().item(), pixels.std().item()) == pytest.approx((0, 1), abs=1e-9)
    assert torch.bincount(digits).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_text_is_python_and_targets_are_the_next_bytes() -> None:
    data = data_of(JobSpec(model=SMALL_GPT, batch=64))
    inputs, targets = data.take(data.step(0))
    assert inputs.shape == targets.shape == (64, 12)
    assert torch.equal(inputs[:, 1:], targets[:, :-1])
    start, _ = data.take(np.arange(0, 1200, 12))
    text = bytes(start.flatten().tolist()).decode()
    assert "import" in text or "def " in text
    assert data.step(0).max() < MOST_BYTES
