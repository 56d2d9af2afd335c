"""What happens to gradients before they change the weights is the same however the model is split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ranks.launch import run
from tests.ranks.test_inside_a_stage import EXCHANGE, SEQUENCE, TENSOR, ZIGZAG, inside, job
from tests.ranks.unsplit import assert_equals_one_process, of_one_process, unsplit_norms
from trainer.recipe import rate_share
from trainer.trace.kinds import Kind

pytestmark = pytest.mark.ranks

WHOLE = {"learning_rate": 1e-2, "warmup_steps": 3, "decay": "cosine", "weight_decay": 0.1, "clip_norm": 0.8}
NUMBER_BYTES = 8


@pytest.mark.parametrize(("grid", "splits"), [
    ({"dp": 2}, {}), ({"cp": 2}, ZIGZAG), ({"cp": 2}, EXCHANGE), ({"pp": 2}, {}), ({"tp": 2}, TENSOR), ({"tp": 2}, SEQUENCE),
    ({"pp": 2, "dp": 2, "tp": 2}, TENSOR), ({"pp": 2, "dp": 2, "tp": 2}, SEQUENCE),
    ({"pp": 2, "cp": 2, "tp": 2}, SEQUENCE | ZIGZAG),
], ids=["dp", "ring", "exchange", "pp", "tensor", "sequence", "pp·dp·tensor", "pp·dp·sequence", "pp·cp·sequence"])
def test_gradients_are_clipped_by_the_whole_models_length(tmp_path: Path, grid: dict[str, int], splits: dict[str, Any]) -> None:
    spec = job(grid, splits, optimizer=WHOLE)
    ran = run(spec, tmp_path).check()
    assert_equals_one_process(ran)
    norms = [norm for _, norm in sorted(ran.counters["grad_norm"].items())]
    expected = of_one_process(unsplit_norms, spec)
    assert norms == pytest.approx(expected, rel=1e-9, abs=0)
    assert max(expected) > WHOLE["clip_norm"], "some of them were clipped"
    rates = [rate for _, rate in sorted(ran.counters["learning_rate"].items())]
    assert rates == [1e-2 * rate_share(spec.optimizer, step, spec.steps) for step in range(spec.steps)]
    asked = [span for span in ran.of(Kind.ALL_REDUCE) if (span.rank, span.step, span.group) == (0, 1, "all")]
    assert [span.bytes for span in asked] == ([NUMBER_BYTES] if {"pp", "tp"} & set(grid) else []), "copies hold it all"


def test_where_the_length_costs_no_message_it_is_told_without_clipping(tmp_path: Path) -> None:
    spec = job({"dp": 2, "cp": 2}, ZIGZAG, steps=3)
    ran = run(spec, tmp_path / "whole").check()
    assert list(ran.counters["grad_norm"].values()) == pytest.approx(of_one_process(unsplit_norms, spec), rel=1e-9, abs=0)
    assert "grad_norm" not in run(job({"pp": 2}, {}, steps=3), tmp_path / "parts").check().counters


HALVES = {"schedule": {"name": "1f1b", "micro_batches": 2, "split_backward": True}}


@pytest.mark.parametrize(("grid", "splits", "changes"), [
    ({"dp": 2}, {}, {}), ({"pp": 2}, {}, HALVES), ({"dp": 2, "pp": 2}, {}, HALVES), ({"tp": 2}, SEQUENCE, {}),
    ({"cp": 2}, ZIGZAG, {}), ({"cp": 2, "dp": 2}, EXCHANGE, {}), ({"pp": 2, "dp": 2, "tp": 2}, SEQUENCE, HALVES),
    ({"pp": 2, "cp": 2, "tp": 2}, TENSOR | ZIGZAG, HALVES),
], ids=["dp", "pp", "dp·pp", "tp", "ring", "exchange·dp", "pp·dp·tp", "pp·cp·tp"])
def test_layers_that_are_run_again(
    tmp_path: Path, grid: dict[str, int], splits: dict[str, Any], changes: dict[str, Any]
) -> None:
    ran = run(job(grid, splits, checkpointing="layer", **changes), tmp_path).check()
    assert_equals_one_process(ran)
    ran.assert_lanes_are_in_order()


def test_what_a_layer_exchanges_it_exchanges_again_in_the_backward(tmp_path: Path) -> None:
    """All but the last sum of each, which nothing in its backward needs."""
    def reduced_in(kind: Kind, folder: str, **changes: Any) -> set[int]:
        ran = run(job({"tp": 2}, TENSOR, steps=2, **changes), tmp_path / folder).check()
        sums = [span for span in ran.of(Kind.ALL_REDUCE) if span.group == "tp"]
        return {len(inside(sums, outer)) for outer in ran.of(kind)}

    layers = 2
    assert reduced_in(Kind.BACKWARD, "kept") == {2 * layers + 1}
    assert reduced_in(Kind.BACKWARD, "again", checkpointing="layer") == {3 * layers + 1}


@pytest.mark.parametrize(("grid", "splits", "changes"), [
    ({"dp": 2, "pp": 2}, {}, {}), ({"pp": 2}, {}, HALVES | {"checkpointing": "layer"}),
    ({"tp": 2, "cp": 2}, SEQUENCE | ZIGZAG, {}), ({"cp": 2}, EXCHANGE, {}), ({"pp": 2, "tp": 2}, SEQUENCE, HALVES),
], ids=["dp·pp", "pp", "tp·ring", "exchange", "pp·tp"])
def test_bf16_is_that_of_one_process(
    tmp_path: Path, grid: dict[str, int], splits: dict[str, Any], changes: dict[str, Any]
) -> None:
    """To the rounding of bfloat16: its 8 bits are 0.4 %, and a mean over many errs less."""
    spec = job(grid, splits, precision="bf16", optimizer=WHOLE, **changes)
    ran = run(spec, tmp_path).check()
    assert_equals_one_process(ran, tolerance=2e-3)
    between_stages = {span.bytes for span in ran.of(Kind.RECEIVE) if span.group == "pp"}
    parts = grid.get("tp", 1) if splits is SEQUENCE else 1
    samples = 8 // grid.get("dp", 1) // 2
    assert between_stages == ({samples * 16 // parts * 16 * 4} if "pp" in grid else set()), "float32 travels"


def test_bf16_differs_from_float32(tmp_path: Path) -> None:
    losses = [run(job({"dp": 2}, {}, precision=precision, steps=3), tmp_path / precision).check().losses
              for precision in ("bf16", "float32")]
    assert losses[0] != pytest.approx(losses[1], rel=1e-6)
    assert losses[0] == pytest.approx(losses[1], rel=1e-2)
