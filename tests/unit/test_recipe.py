"""The learning rate, step by step."""

from __future__ import annotations

import pytest

from trainer.recipe import rate_share
from trainer.spec import OptimizerSpec


def shares(steps: int, **recipe: object) -> list[float]:
    spec = OptimizerSpec.model_validate(recipe)
    return [rate_share(spec, step, steps) for step in range(steps)]


def test_without_warm_up_and_decay_every_step_has_the_whole_rate() -> None:
    assert shares(4) == [1, 1, 1, 1]


def test_warm_up_rises_evenly_to_the_whole_rate() -> None:
    assert shares(6, warmup_steps=3) == [0.25, 0.5, 0.75, 1, 1, 1]


def test_a_decay_ends_at_its_share_in_the_last_step() -> None:
    assert shares(5, decay="linear", final_share=0.2) == pytest.approx([1, 0.8, 0.6, 0.4, 0.2])
    assert shares(5, decay="cosine", final_share=0.0) == pytest.approx([1, (2 + 2**0.5) / 4, 0.5, (2 - 2**0.5) / 4, 0])


def test_a_decay_begins_where_warm_up_ends() -> None:
    assert shares(6, warmup_steps=2, decay="linear", final_share=0.1) == pytest.approx([1 / 3, 2 / 3, 1, 0.7, 0.4, 0.1])


@pytest.mark.parametrize("decay", ["linear", "cosine"])
def test_a_decay_without_a_step_to_fall_in_leaves_the_rate(decay: str) -> None:
    assert shares(1, decay=decay) == [1]
    assert shares(3, warmup_steps=2, decay=decay) == pytest.approx([1 / 3, 2 / 3, 1])
