"""Which tokens of a sequence are whose."""

from __future__ import annotations

import pytest
import torch

from trainer.splits.sequence import places


def test_parts_in_contiguous_and_in_zigzag_order() -> None:
    assert [part.tolist() for part in places("contiguous", 8, 2)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [part.tolist() for part in places("zigzag", 8, 2)] == [[0, 1, 6, 7], [2, 3, 4, 5]]


@pytest.mark.parametrize(("order", "even"), [("contiguous", False), ("zigzag", True)])
def test_under_a_causal_mask_zigzag_alone_is_even(order: str, even: bool) -> None:
    visible = [int((part + 1).sum()) for part in places(order, 32, 4)]
    assert sum(visible) == 32 * 33 / 2
    assert (len(set(visible)) == 1) is even
    assert torch.equal(torch.cat(places(order, 32, 4)).sort().values, torch.arange(32))
