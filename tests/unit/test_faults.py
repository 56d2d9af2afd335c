"""What may be ordered of pace and faults, and what is drawn where the order leaves it open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dashboard.runs import forms
from trainer.complaints import SpecError
from trainer.emulate.devices import COMPUTE_EFFICIENCY, DEVICES, device_seconds, layer_work
from trainer.emulate.durations import durations_ms
from trainer.emulate.faults import RankFaults, struck
from trainer.emulate.links import Links
from trainer.emulate.moment import Moment
from trainer.lives import Life, checkpoint_folder, forget_after, holder_of, newest_checkpoint
from trainer.schedules.actions import Do
from trainer.schedules.theory import bubble_share
from trainer.spec import JobSpec, parse

FOUR: dict[str, Any] = {"grid": {"pp": 4}}


def job(*faults: dict[str, Any], **changes: Any) -> JobSpec:
    return parse({**FOUR, "faults": list(faults), **changes})


@pytest.mark.parametrize(("fault", "field", "message"), [
    ({"kind": "kill", "rank": 4}, "faults.0.rank", "ranks 0 to 3"),
    ({"kind": "kill", "step": 30}, "faults.0.step", "steps 0 to 29"),
    ({"kind": "kill", "rank": 1, "peer": 2}, "faults.0.peer", "only a link has two ends"),
    ({"kind": "slow-link", "rank": 1, "peer": 1}, "faults.0.peer", "0, 2 or 3 would do"),
    ({"kind": "slow-link"}, "faults.0.kind", "links.kind 'modelled' would do"),
    ({"kind": "slow-rank", "factor": 1}, "faults.0.factor", "more than 1"),
    ({"rank": 1}, "faults.0.kind", "it has no kind"),
    ({"kind": "earthquake"}, "faults.0.kind", "'slow-rank', "),
])
def test_what_cannot_go_wrong_says_what_could(fault: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(SpecError) as refused:
        job(fault)
    assert any(error.field == field and message in error.message for error in refused.value.errors), refused.value


def test_only_a_pipelines_messages_can_be_lost() -> None:
    with pytest.raises(SpecError, match=r"or a grid\.pp of 2"):
        job({"kind": "lost-message"}, grid={"dp": 2})


def test_what_is_left_open_is_drawn_from_the_seed() -> None:
    faults = [{"kind": "slow-rank"}] * 8
    drawn = struck(job(*faults))
    assert drawn == struck(job(*faults)) != struck(job(*faults, seed=1))
    assert all(0 <= fault.rank < 4 and 1 <= fault.step < 30 for fault in drawn)
    assert len({(fault.rank, fault.step) for fault in drawn}) > 1
    assert struck(job({"kind": "kill", "rank": 2, "step": 7}))[0].words == "rank 2 is killed"


def test_a_fault_strikes_once_and_a_slow_rank_stays_slow() -> None:
    spec = job({"kind": "kill", "rank": 1, "step": 5}, {"kind": "slow-rank", "rank": 1, "step": 3, "factor": 2},
               {"kind": "slow-rank", "rank": 1, "step": 6, "factor": 1.5})
    first, second = RankFaults(spec, 1), RankFaults(spec, 1, reached=5)
    assert [fault.kind for fault in first.at(5)] == ["kill"]
    assert second.at(5) == [] and [fault.kind for fault in second.at(6)] == ["slow-rank"]
    assert [first.slowness(step) for step in (2, 3, 6)] == [second.slowness(step) for step in (2, 3, 6)] == [1, 2, 3]
    assert RankFaults(spec, 0).slowness(9) == 1 and RankFaults(spec, 0).at(5) == []


def test_faults_survive_the_form_and_a_complaint_stands_beside_them() -> None:
    spec = job({"kind": "slow-rank", "rank": 1, "step": 3}, {"kind": "kill"})
    values = forms.values_of(spec)
    assert parse(forms.read(values)) == spec
    with pytest.raises(SpecError) as refused:
        parse(forms.read(values | {"faults": '[{"kind": "kill", "rank": 9}]'}))
    sections, homeless = forms.bound(values, refused.value.errors)
    said = [message for section in sections for one in section.fields if one.field.name == "faults" for message in one.errors]
    assert not homeless and said == ["0.rank: the job has ranks 0 to 3; one of these would do"]
    with pytest.raises(SpecError, match="faults: 'no list' was given: a list of faults would do"):
        parse(forms.read(values | {"faults": "no list"}))


def test_a_card_takes_what_its_slower_side_takes() -> None:
    """By hand: 128 tokens of width 1,024, a context of 32; 25.2 MFLOP a token and layer for products, bf16."""
    model = {"name": "gpt", "layers": 4, "width": 1024, "heads": 16, "context": 32}
    spec = parse({"model": model, "precision": "bf16", "batch": 32, "pace": {"kind": "device", "slow_down": 1000}})
    forward, inputs, weights = layer_work(spec)
    assert forward.flops == 2 * 128 * 12 * 1024**2 + 4 * 128 * 32 * 1024
    assert inputs.flops - weights.flops == 2 * (forward.flops - weights.flops)
    assert weights.bytes == 2 * (12 * 1024**2 + 128 * 16 * 1024)
    by_memory = forward.bytes / (3.35e12 * 0.8)
    assert by_memory > forward.flops / (989e12 * COMPUTE_EFFICIENCY)  # so few tokens do not keep its arithmetic busy
    assert device_seconds(spec)[0] == pytest.approx(4 * by_memory)
    assert durations_ms(spec)[Do.FORWARD] == pytest.approx(4 * by_memory * 1e6)
    assert DEVICES["h100"].seconds(weights, "float64") > DEVICES["h100"].seconds(weights, "bf16")


def test_the_theory_of_a_card_does_not_depend_on_how_much_is_simulated() -> None:
    pace = {"kind": "device"}
    even = parse({**FOUR, "pace": pace, "schedule": {"name": "1f1b", "micro_batches": 64}, "batch": 128})
    assert bubble_share(even) == pytest.approx(3 / 67)


def test_a_slow_down_nobody_would_wait_for_is_refused() -> None:
    with pytest.raises(SpecError, match=r"pace\.slow_down: 1000000000.* at most 60 s would do"):
        parse({"pace": {"kind": "device", "slow_down": 1e9}})


def test_a_checkpoint_counts_when_all_who_hold_something_have_finished_it(tmp_path: Path) -> None:
    spec = parse({"grid": {"pp": 2, "dp": 2}})
    assert [holder_of(spec, rank) for rank in range(4)] == [0, 1, 0, 1]
    zero = parse({"grid": {"pp": 2, "dp": 2}, "splits": {"data": {"mode": "zero-1"}}})
    assert [holder_of(zero, rank) for rank in range(4)] == [0, 1, 2, 3]
    both_ways = parse({"grid": {"pp": 2, "dp": 2}, "schedule": {"name": "dualpipe"}})
    assert [holder_of(both_ways, rank) for rank in range(4)] == [0] * 4, "each of two ranks has both stages"
    assert newest_checkpoint(spec, tmp_path) == 0
    for steps, holder in ((5, 0), (5, 1), (10, 0)):
        checkpoint_folder(tmp_path, steps, holder).mkdir(parents=True)
        (checkpoint_folder(tmp_path, steps, holder) / ".metadata").touch()
    assert newest_checkpoint(spec, tmp_path) == 5
    assert newest_checkpoint(zero, tmp_path) == 0
    forget_after(tmp_path, 5)
    assert not checkpoint_folder(tmp_path, 10, 0).exists() and checkpoint_folder(tmp_path, 5, 1).exists()


def test_a_life_says_what_it_costs() -> None:
    assert Life(1, 5, 7, cause="Rank 1 was killed.").words == (
        "Restart 1: Rank 1 was killed. All ranks begin again from the checkpoint before step 5: 3 steps are done again.")
    assert Life(2, 0, -1).words.endswith("from the start: no step is done again.")


def test_a_slow_link_is_slow_both_ways_and_no_other_is(tmp_path: Path) -> None:
    own = {"all_reduce": "ring", "all_gather": "ring", "reduce_scatter": "ring", "all_to_all": "ring"}
    spec = job({"kind": "slow-link", "rank": 0, "peer": 1, "step": 2, "factor": 4}, {"kind": "slow-link", "rank": 3, "step": 2},
               links={"kind": "modelled"}, collectives=own)
    links, faults = Links(spec, 0, tmp_path / "ports", Moment()), RankFaults(spec, 0)
    before = links.as_counted(0, 1)
    assert faults.slow_links(1) == []
    links.slowed = {(fault.rank, fault.peer): fault.factor for fault in faults.slow_links(2)}
    for ends, factor in (((0, 1), 4), ((1, 0), 4), ((0, 2), 1), ((1, 3), 2), ((3, 2), 2)):
        assert links.as_counted(*ends).seconds(1000) == pytest.approx(factor * before.seconds(1000)), ends
