"""Explain names what was planted in a paced run, and what it promises is what the changed run then saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ranks.explained import changed, measured
from tests.ranks.launch import MOST_STOLEN
from trainer.memory import predicted
from trainer.presets import preset
from trainer.spec import JobSpec

pytestmark = [pytest.mark.ranks, pytest.mark.timed]

GAIN_TOLERANCE = 0.1
SLOW = {"pace.forward_ms": "40.0", "pace.backward_ms": "80.0", "steps": "5"}  # so that late wake-ups weigh little

# Planted: the job, the cause that has to come first, and the beginning of the remedy that is tried.
PLANTED = {
    "few micro-batches": ("pipeline-1f1b", SLOW | {"schedule.micro_batches": "2"}, "bubble", "8 micro-batches"),
    "unequal stages": ("pipeline-by-hand", SLOW, "cuts", "Stages of 2, 2, 2, 2"),
    "a slow rank": (
        "pipeline-1f1b", SLOW | {"faults": '[{"kind": "slow-rank", "rank": 2, "step": 0, "factor": 1.6}]'}, "slow-rank", "Mend"),
    "slices across servers": (
        "tensor-across-servers", {"steps": "5"}, "inside", "All 4 tensor slices"),
    "small messages on a ring": (
        "allreduce-ring", {"steps": "6", "links.size_factor": "1", "links.slow_down": "20000"}, "between", "AllReduce by"),
}


@pytest.mark.parametrize("case", PLANTED)
def test_what_was_planted_comes_first_and_the_gain_is_the_promised_one(case: str, tmp_path: Path) -> None:
    key, sets, cause, title = PLANTED[case]
    spec = changed(preset(key).spec, sets)
    found = undisturbed(spec, tmp_path / "before")
    first = found["causes"][0]
    assert first["key"] == cause
    remedy = next(one for one in first["remedies"] if one["title"].startswith(title))
    then = undisturbed(changed(spec, remedy["sets"]), tmp_path / "after")
    assert found["step_ms"] - then["step_ms"] == pytest.approx(remedy["gain_ms"], rel=GAIN_TOLERANCE)


def test_activations_near_the_cards_size_come_first_and_what_is_promised_is_then_free(tmp_path: Path) -> None:
    sets = {"model.context": "128", "steps": "3", "pace.forward_ms": "5.0", "pace.backward_ms": "10.0"}
    roomy = changed(preset("pipeline-gpipe").spec, sets)
    card_mb = max(one.total for one in predicted(roomy)) / 0.9e6
    spec = changed(roomy, {"pace.memory_mb": str(card_mb)})
    found = measured(spec, tmp_path / "before")
    first = found["causes"][0]
    assert (first["key"], first["title"]) == ("memory", "Activations near the card's size")
    assert first["remedies"]
    for number, remedy in enumerate(first["remedies"]):
        then = measured(changed(spec, remedy["sets"]), tmp_path / f"after-{number}")
        assert found["held"] - then["held"] == pytest.approx(remedy["gain_bytes"], rel=GAIN_TOLERANCE)


def undisturbed(spec: JobSpec, folder: Path) -> dict[str, Any]:
    found = measured(spec, folder)
    if found["realtime"] != {"granted"}:
        pytest.skip(f"without the real-time class wake-ups are late: {found['realtime']}")
    if found["stolen"] > MOST_STOLEN:
        pytest.skip(f"the host took {found['stolen']:.1%} of this machine's time, so wake-ups are late")
    return found
