"""A Linear whose weight gradient can be computed later than the gradient of its input.

A pipeline's previous stage waits for the input's gradient alone. The weight's needs only two tensors
that are there by then, so it can be put off into a bubble (Qi et al., "Zero Bubble Pipeline Parallelism", 2023).

Linears of one size may lie side by side in one (`Linears`): its parameters then have a first axis more.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class WeightGradients:
    """What the Linears of a stage have put off since the last `take`."""

    def __init__(self) -> None:
        self._put_off: list[tuple[Linear, Tensor, Tensor]] = []

    def put_off(self, linear: Linear, inputs: Tensor, gradient: Tensor) -> None:
        self._put_off.append((linear, inputs, gradient))

    def take(self) -> list[tuple[Linear, Tensor, Tensor]]:
        """(layer, its input, its output's gradient) of every Linear that ran backward since the last call."""
        taken, self._put_off = self._put_off, []
        return taken


class Linear(nn.Linear):
    """As torch's; with `later` set, its backward leaves the parameters' gradients there."""

    later: WeightGradients | None = None

    def forward(self, inputs: Tensor) -> Tensor:
        return self.product(inputs, self.bias)

    def product(self, inputs: Tensor, bias: Tensor | None) -> Tensor:
        """Inputs times weight, and `bias` added where there is one to add."""
        if self.later is None:
            return _product(inputs, self.weight, bias)
        # The parameters enter detached, so that this backward tells neither them nor hooks on them
        # (DDP's) that their gradient is ready. Something must still ask for a gradient, or a first
        # layer over data would have no backward at all: the anchor does.
        # What autocast does to a product's operands is done here, so that the backward finds all in one dtype.
        anchor = torch.zeros((), dtype=inputs.dtype, device=inputs.device, requires_grad=True)
        dtype = torch.get_autocast_dtype(inputs.device.type) if torch.is_autocast_enabled(inputs.device.type) else inputs.dtype
        put_off = None if bias is None else bias.detach().to(dtype)
        output = _LaterWeightGradient.apply(inputs.to(dtype), self.weight.detach().to(dtype), put_off, anchor, self)
        assert isinstance(output, Tensor)
        return output

    def parameter_gradients(self, inputs: Tensor, gradient: Tensor) -> dict[Tensor, Tensor]:
        """Gradients by parameter, from the input and the output's gradient."""
        if self.weight.dim() == 3:
            return {self.weight: gradient.mT @ inputs, self.bias: gradient.sum(1, keepdim=True)}
        rows = gradient.reshape(-1, gradient.shape[-1])
        of_weight, of_bias = rows.T @ inputs.reshape(-1, inputs.shape[-1]), rows.sum(0)
        return {self.weight: of_weight.to(self.weight.dtype), self.bias: of_bias.to(self.bias.dtype)}


class Linears(Linear):
    """`count` of them side by side, each with rows of its own: (count, rows, inputs) to (count, rows, outputs)."""

    def __init__(self, count: int, inputs: int, outputs: int):
        nn.Module.__init__(self)  # not Linear's own, which would make one alone
        self.in_features, self.out_features = inputs, outputs
        each = [nn.Linear(inputs, outputs) for _ in range(count)]
        self.weight = nn.Parameter(torch.stack([one.weight.detach() for one in each]))
        self.bias = nn.Parameter(torch.stack([one.bias.detach() for one in each]).unsqueeze(1))


def _product(inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if weight.dim() == 2:
        return functional.linear(inputs, weight, bias)
    product = inputs @ weight.mT
    return product if bias is None else product + bias


class _LaterWeightGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None, anchor: Tensor, linear: Linear) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        ctx.linear = linear
        return _product(inputs, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        inputs, weight = ctx.saved_tensors
        (gradient,) = gradients
        ctx.linear.later.put_off(ctx.linear, inputs, gradient)
        return (gradient @ weight if ctx.needs_input_grad[0] else None), None, None, None, None


def put_off_weights(module: nn.Module) -> WeightGradients:
    """Make every Linear in `module` leave its parameters' gradients in what is returned."""
    later = WeightGradients()
    for part in module.modules():
        if isinstance(part, Linear):
            part.later = later
    return later
