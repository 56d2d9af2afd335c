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
    losses = []

    def held_forward():
        held.forward("whole", lambda: losses.append(forward()), lambda: losses[-1:], elsewhere=[inputs, targets])

    held_forward()
    one = held.bytes
    _, allocated = given_out(held_forward)
    assert 0 < one == allocated == held.bytes / 2
    losses.pop().backward()
    held.let_go("whole")
    assert held.bytes == one


def test_what_lies_elsewhere_does_not_count_and_views_of_one_storage_count_once():
    samples, kept = torch.zeros(4, 3), torch.zeros(10)
    assert bytes_of([samples[0], samples[1]]) == samples.nbytes
    held = Held(torch.nn.Module())
    held.put_off("kind", lambda: [samples[0], kept, kept.view(2, 5)], elsewhere=[samples])
    assert held.bytes == 40
    held.let_go("kind")
    assert held.bytes == 0


@pytest.fixture
def counted():
    """A probe of a small model, and what it counted: (kind, value, step, ms)."""
    rows = []
    module = torch.nn.Linear(3, 2)
    probe = memory.MemoryProbe(module, lambda name, value, step, at_ns: rows.append((name, value, step, at_ns / 1e6)),
                               lambda: 7, lambda: 12, torch.device("cpu"))
    probe.install()
    yield probe, module, rows
    probe.remove()


def of(rows, kind):
    return [(value, ms) for name, value, _, ms in rows if name == f"memory/{kind}"]


def sample(probe, *samples, steps=memory.CLOSE_STEPS):
    probe._steps = steps
    for ms, value in samples:
        probe.sample(value, round(ms * 1e6))


def test_short_actions_show_their_peak_and_their_latest(counted):
    probe, _, rows = counted
    sample(probe, (100, 1), (101, 5), (102, 3), (103, 2), (115, 4))
    assert of(rows, "activations") == [(1, 100), (5, 101), (4, 115)]
    assert {step for _, _, step, _ in rows} == {7} and of(rows, "buffers") == [(12, 100)]
    probe.sample(0, 116_000_000)
    probe.remove()
    assert of(rows, "activations")[-1] == (0, 116)


def test_long_actions_show_every_change_and_so_do_the_first_steps(counted):
    probe, _, rows = counted
    sample(probe, (100, 1), (120, 2), (140, 1), (160, 2))
    sample(probe, (170, 3), (170.1, 4), (170.2, 3), steps=0)
    assert [value for value, _ in of(rows, "activations")] == [1, 2, 1, 2, 3, 4, 3]


def test_a_rate_has_a_bound_and_a_steady_value_is_said_again(counted):
    probe, _, rows = counted
    sample(probe, *((1000 + tick / 10, tick % 7) for tick in range(30_000)))  # a change each 0.1 ms, for three seconds
    assert 300 < len(of(rows, "activations")) <= 2 * 3_000 / 10
    assert max(value for value, _ in of(rows, "activations")) == 6
    assert [value for value, _ in of(rows, "weights")] == [32] * 3


def test_gradients_and_the_optimizers_state_are_seen_as_they_come_and_go(counted):
    probe, module, rows = counted
    optimizer = torch.optim.AdamW(module.parameters())
    probe.sample(0, 10**9)
    module(torch.ones(1, 3)).sum().backward()
    probe.sample(0, 10**9 + 1)
    optimizer.step()
    optimizer.zero_grad()
    probe.end_step(0)
    assert [value for value, _ in of(rows, "gradients")] == [0, 32, 0]
    assert of(rows, "optimizer")[-1][0] == 2 * 32 + 2 * 4
