"""What a forward leaves in memory, against torch's own account of what it gave out; and how counters are thinned."""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

from trainer.models import model_of
from trainer.probes import memory
from trainer.probes.held import Held, bytes_of
from trainer.spec import Gpt, JobSpec, Perceptron


def given_out(call):
    """What `call` returns, and the bytes that it left allocated, by torch's profiler."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        returned = call()
    return returned, sum(event.self_cpu_memory_usage for event in profiler.events())


def again(layer, inputs):
    """Computed anew in the backward."""
    return checkpoint(layer, inputs, use_reentrant=False, preserve_rng_state=False)


def samples_of(spec):
    if isinstance(spec.model, Perceptron):
        return torch.randn(8, 784), torch.randint(0, 10, (8,))
    return torch.randint(0, 256, (2, spec.model.context)), torch.randint(0, 256, (2, spec.model.context))


@pytest.mark.parametrize("spec", [JobSpec(model=Perceptron()), JobSpec(model=Gpt(layers=2))], ids=["perceptron", "gpt"])
@pytest.mark.parametrize("recompute", [False, True], ids=["all kept", "recomputed"])
def test_a_forward_leaves_what_torch_gave_out_meanwhile(spec, recompute):
    model = model_of(spec)
    module, (inputs, targets) = model.stage(0, model.layers), samples_of(spec)

    def forward():
        activations = inputs
        for layer in module:
            activations = again(layer, activations) if recompute else layer(activations)
        return model.loss(activations, targets)

    forward()
    held = Held(module)
    held.begin_step([inputs, targets])
    losses = []
    held.forward("whole", lambda: losses.append(forward()), lambda: losses)
    held.keep(0, losses, "whole")
    _, allocated = given_out(lambda: losses.append(forward()))
    assert 0 < held.bytes == allocated
    held.forward("whole", lambda: losses.append(forward()), lambda: losses)
    held.keep(1, losses[-1:], "whole")
    one = held.bytes / 2
    held.keep(0, [])
    assert held.bytes == one
    held.keep(1, [])
    assert held.bytes == 0


def test_tensors_held_twice_count_once():
    held = Held(torch.nn.Module())
    tensor = torch.zeros(10)
    held.keep("producer", [tensor])
    held.keep("consumer", [tensor.view(2, 5)])
    assert held.bytes == 40
    held.keep("producer", [])
    assert held.bytes == 40
    held.keep("consumer", [])
    assert held.bytes == 0


def test_views_of_one_storage_count_once_and_samples_not_at_all():
    samples = torch.zeros(4, 3)
    assert bytes_of([samples[0], samples[1]]) == samples.nbytes
    held = Held(torch.nn.Module())
    held.begin_step([samples])
    held.keep(0, [samples[0], torch.zeros(2)])
    assert held.bytes == 8


@pytest.fixture
def counted(monkeypatch):
    """A probe of a small model, and what it counted: (kind, value, step, ms)."""
    rows = []
    module = torch.nn.Linear(3, 2)
    probe = memory.MemoryProbe(module, lambda name, value, step, at_ns: rows.append((name, value, step, at_ns / 1e6)),
                               lambda: 7, torch.device("cpu"))
    probe.install()
    yield probe, module, rows
    probe.remove()


def of(rows, kind):
    return [(value, ms) for name, value, _, ms in rows if name == f"memory/{kind}"]


def test_short_actions_show_their_peak_and_their_latest(counted):
    probe, _, rows = counted
    for ms, value in ((100, 1), (101, 5), (102, 3), (103, 2), (115, 4)):
        probe.sample(value, 0, ms * 1_000_000)
    assert of(rows, "activations") == [(1, 100), (5, 101), (2, 103), (4, 115)]
    assert {step for _, _, step, _ in rows} == {7}


def test_long_actions_show_every_change(counted):
    probe, _, rows = counted
    for ms, value in ((100, 1), (120, 2), (140, 1), (160, 2)):
        probe.sample(value, 0, ms * 1_000_000)
    assert of(rows, "activations") == [(1, 100), (2, 120), (1, 140), (2, 160)]


def test_a_rate_has_a_bound_and_a_steady_value_is_said_again(counted):
    probe, _, rows = counted
    for tick in range(30_000):
        probe.sample(tick % 7, 0, 1_000_000_000 + tick * 100_000)  # a change each 0.1 ms, for three seconds
    assert len(of(rows, "activations")) <= 2 * 3_000 / 10 + 2
    assert [value for value, _ in of(rows, "weights")] == [32] * 3


def test_gradients_and_the_optimizers_state_are_seen_as_they_come_and_go(counted):
    probe, module, rows = counted
    optimizer = torch.optim.AdamW(module.parameters())
    probe.sample(0, 0, 10**9)
    module(torch.ones(1, 3)).sum().backward()
    probe.sample(0, 0, 10**9 + 20_000_000)
    optimizer.step()
    optimizer.zero_grad()
    probe.end_step(0, 0)
    probe.remove()
    assert [value for value, _ in of(rows, "gradients")] == [0, 32, 0]
    assert of(rows, "optimizer")[-1][0] == 2 * 32 + 2 * 4
