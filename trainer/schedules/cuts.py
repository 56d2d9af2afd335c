"""Where a pipeline cuts the model: how many layers each stage has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainer.spec import JobSpec


def layers_of(spec: JobSpec) -> list[int]:
    """Of each stage, in the order of stages."""
    stages = spec.grid.pp * spec.schedule.chunks
    return list(spec.schedule.layers) or [spec.model.layers // stages] * stages


def is_even(spec: JobSpec) -> bool:
    """Whether all stages have equally many layers."""
    return len(set(layers_of(spec))) == 1


def shares_of(spec: JobSpec) -> list[float]:
    """Each stage's part of the work that the pace gives a rank, which is that of layers / ranks layers.

    1 for even stages, one a rank; all of them add up to the number of ranks.
    """
    return [layers * spec.grid.pp / spec.model.layers for layers in layers_of(spec)]


def nearly_even(layers: int, stages: int) -> list[int]:
    """A cut of at least as many `layers` into `stages`, the longer ones first."""
    short, longer = divmod(layers, stages)
    return [short + 1] * longer + [short] * (stages - longer)
