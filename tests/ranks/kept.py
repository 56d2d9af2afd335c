"""A rank that leaves its parameters behind, and the whole model's gradients from what all of them left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

import trainer.rank
from tests.ranks.unsplit import of_one_process, unsplit_gradients, unsplit_start
from trainer.grid import Grid
from trainer.job import Control, RankJob
from trainer.schedules.cuts import layers_of
from trainer.spec import JobSpec
from trainer.training import Training


def keeping_parameters(job: RankJob, control: Control) -> int:
    """A rank that leaves its parameters, by their names in the whole model, in its folder when it is done."""
    prove_equal = Training.prove_equal

    def keep(training: Training) -> bool:
        layers, found = layers_of(training.spec), {}
        for stage, module in training.modules.items():
            before = sum(layers[:int(stage)]) + (int(stage) > 0)  # parts of earlier stages: their layers, and the embedding
            for name, parameter in module.named_parameters():
                number, _, rest = name.partition(".")
                found[f"{int(number) + before}.{rest}"] = parameter
        torch.save(found, job.folder / f"parameters-{job.rank}.pt")
        return prove_equal(training)

    Training.prove_equal = keep  # type: ignore[method-assign]
    return trainer.rank.main(job, control)


def assert_gradients_are_the_whole_models(spec: JobSpec, folder: Path) -> None:
    """Of a job that ran one step of plain descent at rate 1, which takes just its gradient from each parameter."""
    before, gradients = of_one_process(unsplit_start, spec), of_one_process(unsplit_gradients, spec)
    by_rank = [torch.load(folder / f"parameters-{rank}.pt") for rank in range(spec.ranks)]
    grid, seen = Grid.of(spec.grid), set()
    for ranks in grid.groups("ep", "tp"):
        for name in by_rank[ranks[0]]:
            gradient = gradients[name]
            slices = [ranks[first:first + grid.size("tp")] for first in range(0, len(ranks), grid.size("tp"))]
            after = joined_experts([joined([by_rank[rank][name].detach() for rank in each], name) for each in slices], name)
            np.testing.assert_allclose(before[name] - after.numpy(), gradient, rtol=0, atol=1e-15 + 1e-12 * abs(gradient).max())
            seen.add(name)
    assert seen == set(gradients)


def joined(parts: list[Tensor], name: str) -> Tensor:
    """A parameter of the whole model from the parts of all tensor ranks."""
    if name.endswith(("projections.weight", "projections.bias")):  # queries, keys and values are cut each for itself
        return torch.cat([part.unflatten(0, (3, -1)) for part in parts], 1).flatten(0, 1)
    if ".router." in name:
        return same(parts, name)
    if name.endswith(("byte.weight", "widen.weight", "scores.weight")):
        return torch.cat(parts, -2)
    if name.endswith(("widen.bias", "scores.bias", "join.weight", "narrow.weight")):
        return torch.cat(parts, -1)
    return same(parts, name)


def joined_experts(parts: list[Tensor], name: str) -> Tensor:
    """A parameter of the whole model from those of all ranks that share experts."""
    return torch.cat(parts) if ".experts." in name else same(parts, name)


def same(parts: list[Tensor], name: str) -> Tensor:
    assert all(torch.equal(part, parts[0]) for part in parts), f"{name} is whole on every rank"
    return parts[0]
