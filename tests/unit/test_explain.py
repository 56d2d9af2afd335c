"""Explain names what costs most, on steps in which one cause was planted, and its pieces are the whole step."""

import json
from dataclasses import asdict

import pytest

from dashboard.charts.explain import explanation
from dashboard.charts.explain.memory import watched_ranks
from dashboard.charts.explain.pieces import step_ms
from dashboard.charts.explain.remedies import balanced
from dashboard.charts.panels import explain as explain_panel
from dashboard.charts.panels import panels_of
from dashboard.runs.intake import as_value, checked, with_changes
from trainer.emulate.durations import durations_ms
from trainer.grid import Grid
from trainer.memory import predicted
from trainer.presets import PRESETS, preset
from trainer.schedules import stages_of
from trainer.schedules.actions import Do
from trainer.schedules.cuts import layers_of
from trainer.spec import parse
from trainer.step_time import step_ms as predicted_step_ms

PIPELINE = {"grid": {"pp": 4}, "pace": {"kind": "paced"}, "batch": 32, "model": {"name": "gpt", "layers": 4}}


def rows(spec, slow_ranks=None, messages_ms=0.0, between_ms=3.0, steps=5, exposed_share=0.0):
    """Steps as the recorder figures them, of a machine that keeps to the simulator but for what is planted."""
    slow = [(slow_ranks or {}).get(rank, 1.0) for rank in range(spec.ranks)]
    places = [Grid.of(spec.grid).address(rank).pp for rank in range(spec.ranks)]
    of_place = [max(slow[rank] for rank in range(spec.ranks) if places[rank] == place) for place in range(spec.grid.pp)]
    extent_ms = step_ms(spec, of_place) + messages_ms
    lasts, layers = durations_ms(spec), layers_of(spec)
    whole = spec.schedule.micro_batches * (lasts[Do.FORWARD] + lasts[Do.BACKWARD]) * spec.grid.pp / spec.model.layers / spec.ways
    busy = [whole * sum(layers[stage] for stage in stages_of(spec)[places[rank]]) * slow[rank] for rank in range(spec.ranks)]
    period_ms = extent_ms + between_ms
    return [{
        "step": step, "complete": True, "work_start_ns": step * period_ms * 1e6,
        "work_end_ns": (step * period_ms + extent_ms) * 1e6, "period_ns": period_ms * 1e6, "busy_ns": [ms * 1e6 for ms in busy],
        "recorded_spans": [100] * spec.ranks, "exposed_share": exposed_share,
    } for step in range(steps)]


def spec_of(**changes):
    return parse(PIPELINE | changes)


@pytest.mark.parametrize("key", PRESETS)
def test_the_pieces_of_a_step_add_up_to_it(key):
    spec = preset(key).spec
    if spec.pace.kind != "paced":
        spec = spec.model_copy(update={"pace": preset("pipeline-1f1b").spec.pace})
    found = explanation(spec, rows(spec, {0: 1.4}, messages_ms=7, between_ms=11))
    assert sum(piece["ms"] for piece in found["pieces"]) == pytest.approx(found["step_ms"], rel=0.01)
    assert json.loads(json.dumps(found)) == found


PLANTED = {
    "bubble": (spec_of(schedule={"micro_batches": 2}), {}),
    "cuts": (preset("pipeline-by-hand").spec, {}),
    "slow-rank": (spec_of(model={"name": "gpt", "layers": 16}, schedule={"micro_batches": 16}), {"slow_ranks": {2: 1.5}}),
    "messages": (spec_of(schedule={"micro_batches": 16}), {"messages_ms": 400}),
    "between": (preset("parameter-server").spec, {"between_ms": 90}),
}


def test_a_slow_rank_under_dualpipe_slows_its_own_copies_once():
    spec = preset("pipeline-dualpipe").spec
    assert (step_ms(spec), step_ms(spec, [1.5] * 4)) == (500, 750), "a stage is on two ranks, and slow on each by itself"
    found = explanation(spec, rows(spec, {2: 1.5}))
    (slow,) = [cause for cause in found["causes"] if cause["key"] == "slow-rank"]
    assert "Rank 2" in slow["says"]
    assert [remedy["title"] for remedy in slow["remedies"]] == ["Mend or replace the device of rank 2"]


def test_another_order_says_what_two_copies_take():
    found = explanation(spec_of(), rows(spec_of()))
    (bubble,) = [cause for cause in found["causes"] if cause["key"] == "bubble"]
    (twice,) = [remedy for remedy in bubble["remedies"] if remedy["title"] == "The schedule DualPipe, every stage on two ranks"]
    assert twice["says"].endswith("activations would take 25.0 % more room, weights and all that goes with them twice as much.")
    assert twice["gain_ms"] == 660 - 500


@pytest.mark.parametrize("cause", PLANTED)
def test_a_planted_cause_is_named_first(cause):
    spec, planted = PLANTED[cause]
    found = explanation(spec, rows(spec, **planted))
    first = found["causes"][0]
    assert first["key"] == cause
    assert f"{first['title'][0].lower()}{first['title'][1:]}" in found["words"]
    gains = [remedy["gain_ms"] for remedy in first["remedies"]]
    assert gains == sorted(gains, reverse=True)
    assert all(0 < gain <= first["ms"] * 1.001 for gain in gains), "nothing gains more than its cause costs"


@pytest.mark.parametrize("cause", ["bubble", "cuts", "slow-rank"])
def test_what_a_change_gains_is_what_the_changed_job_takes_less(cause):
    spec, planted = PLANTED[cause]
    found = explanation(spec, rows(spec, **planted))
    slow = planted.get("slow_ranks", {})
    remedies = [remedy for remedy in found["causes"][0]["remedies"] if remedy["sets"]]
    assert remedies
    for remedy in remedies:
        changed = checked(with_changes(spec.model_dump(), {path: as_value(text) for path, text in remedy["sets"].items()}))
        then = explanation(changed, rows(changed, slow))
        assert found["step_ms"] - then["step_ms"] == pytest.approx(remedy["gain_ms"], rel=0.02)


def test_few_micro_batches_are_the_first_thing_to_change():
    spec = spec_of(schedule={"micro_batches": 2})
    best = explanation(spec, rows(spec))["causes"][0]["remedies"][0]
    assert best["title"] == "8 micro-batches in place of 2"
    assert best["sets"] == {"schedule.micro_batches": "8", "pace.forward_ms": "5.0", "pace.backward_ms": "10.0"}


def test_a_slow_rank_is_named_and_gets_fewer_layers():
    spec = spec_of(model={"name": "gpt", "layers": 16}, schedule={"micro_batches": 16})
    cause = explanation(spec, rows(spec, {2: 1.5}))["causes"][0]
    assert cause["says"].startswith("Rank 2 takes 50.0 % longer")
    mend, fewer = cause["remedies"]
    assert mend["sets"] == {} and "rank 2" in mend["title"]
    assert fewer["sets"] == {"schedule.layers": "[4, 4, 3, 5]"}


def test_at_real_pace_work_is_what_was_measured_less_what_recording_it_took():
    paced = spec_of()
    real = paced.model_copy(update={"pace": paced.pace.model_copy(update={"kind": "real"})})
    seen = [row | {"recorded_spans": [10_000, 2_000, 9_000, 9_000]} for row in rows(paced)]
    at_pace, measured = ({piece["key"]: piece for piece in explanation(spec, seen)["pieces"]} for spec in (paced, real))
    watching = measured.pop("watching")
    assert watching["ms"] == pytest.approx(11.0) and "10,000 spans" in watching["says"]
    assert measured["work"]["ms"] + watching["ms"] == pytest.approx(at_pace["work"]["ms"])
    assert [piece["ms"] for key, piece in measured.items() if key != "work"] == pytest.approx(
        [piece["ms"] for key, piece in at_pace.items() if key != "work"])


def test_steps_that_are_quicker_than_their_pace_are_taken_as_measured():
    """No real rank is; spans that others made, or were made up, may be."""
    spec = spec_of()
    quick = [row | {"work_end_ns": row["work_start_ns"] + (row["work_end_ns"] - row["work_start_ns"]) / 20,
                    "period_ns": row["period_ns"] / 20, "busy_ns": [ns / 20 for ns in row["busy_ns"]]} for row in rows(spec)]
    found, paced = explanation(spec, quick), explanation(spec, rows(spec))
    shares = {piece["key"]: piece["share"] for piece in found["pieces"]}
    assert 0 < shares["work"] < 1 and sum(shares.values()) == pytest.approx(1, rel=0.01)
    assert shares["bubble"] == pytest.approx({piece["key"]: piece["share"] for piece in paced["pieces"]}["bubble"], rel=0.01)
    assert (found["is_paced"], paced["is_paced"]) == (False, True)


def test_the_preset_of_slices_across_servers_is_told_to_bring_them_together():
    """As the page on placement promises: its messages have to be long enough that rate, and not latency, rules."""
    spec = preset("tensor-across-servers").spec
    taken = predicted_step_ms(spec) / (spec.schedule.micro_batches * (spec.pace.forward_ms + spec.pace.backward_ms))
    first = explanation(spec, rows(spec, dict.fromkeys(range(4), taken)))["causes"][0]
    assert first["key"] == "inside" and first["remedies"][0]["title"] == "All 4 tensor slices in one server"
    assert first["remedies"][0]["share"] > 0.5


def test_the_words_say_which_steps_they_are_about():
    spec = spec_of()
    assert "(median of the latest 4)" in explanation(spec, rows(spec))["words"]
    assert "median" not in explanation(spec, rows(spec, steps=1))["words"]


def held_by(spec, scale=1.0):
    """Each place's memory, as formulas have it."""
    return {place: {kind: scale * held for kind, held in asdict(one).items()} for place, one in enumerate(predicted(spec))}


def of_card(spec, share):
    """The job on a card of which its fullest rank takes `share`."""
    most_mb = max(one.total for one in predicted(spec)) / 1e6
    return spec.model_copy(update={"pace": spec.pace.model_copy(update={"memory_mb": most_mb / share})})


def test_activations_near_the_cards_size_come_first_and_what_lowers_them_is_what_formulas_say():
    spec = of_card(preset("pipeline-gpipe").spec.model_copy(update={"model": preset("pipeline-gpipe").spec.model.model_copy(
        update={"context": 256})}), 0.9)
    found = explanation(spec, rows(spec), held_by(spec))
    cause = found["causes"][0]
    assert (cause["key"], cause["title"]) == ("memory", "Activations near the card's size")
    assert cause["share"] == pytest.approx(0.9) and cause["says"] in found["words"]
    gains = [one["gain_bytes"] for one in cause["remedies"]]
    assert gains == sorted(gains, reverse=True) and gains[-1] > 0
    checkpointing = next(one for one in cause["remedies"] if one["title"] == "Activation checkpointing")
    assert checkpointing["costs_ms"] > 0
    assert "naive" not in " ".join(one["title"] for one in cause["remedies"]), "it would take three times as long"
    for one in cause["remedies"]:
        changed = checked(with_changes(spec.model_dump(), {path: as_value(text) for path, text in one["sets"].items()}))
        then = max(sum(kinds.values()) for kinds in held_by(changed).values())
        assert cause["bytes"] - then == pytest.approx(one["gain_bytes"])


def test_memory_is_no_cause_with_room_left_or_without_a_card():
    spec = preset("pipeline-gpipe").spec
    assert watched_ranks(spec) == frozenset() and watched_ranks(of_card(spec, 0.9)) == {0, 1, 2, 3}
    for given in (spec, of_card(spec, 0.7)):
        assert "memory" not in {cause["key"] for cause in explanation(given, rows(given), held_by(given))["causes"]}
    too_much = of_card(spec, 0.9)
    says = explanation(too_much, [], held_by(too_much, 1.2))["causes"][0]["says"]
    assert says.endswith("It does not fit.")


def test_a_slow_rank_that_the_job_orders_is_mended_by_not_ordering_it():
    faults = [{"kind": "slow-rank", "rank": 2, "step": 0, "factor": 1.5}, {"kind": "slow-rank", "rank": 0, "step": 3}]
    spec = spec_of(model={"name": "gpt", "layers": 16}, schedule={"micro_batches": 16}, faults=faults)
    mend = explanation(spec, rows(spec, {2: 1.5}))["causes"][0]["remedies"][0]
    assert [fault["rank"] for fault in json.loads(mend["sets"]["faults"])] == [0]


def test_layers_are_dealt_so_that_the_longest_stage_is_short():
    assert balanced(8, [1, 1, 1, 1]) == [2, 2, 2, 2]
    assert balanced(10, [1, 1, 1, 1]) == [2, 2, 3, 3]
    assert balanced(7, [1, 1, 3, 1]) == [2, 2, 1, 2]


def test_before_the_first_step_and_for_huge_steps_it_says_so():
    spec = spec_of()
    assert "not there yet" in explanation(spec, [])["words"]
    assert "not there yet" in explanation(spec, [row | {"complete": False} for row in rows(spec)])["words"]
    huge = spec.model_copy(update={"schedule": spec.schedule.model_copy(update={"micro_batches": 4096})})
    assert "not simulated" in explanation(huge, rows(spec))["words"]


def test_every_job_has_the_panel_and_it_reads_the_latest_rows(monkeypatch):
    spec = spec_of()
    assert all("explain" in {one.key for one in panels_of(one.spec)} for one in PRESETS.values())
    monkeypatch.setattr(explain_panel, "recent_rows", lambda run: rows(run.spec))
    run = type("AnyRun", (), {"spec": spec, "state": "running", "steps_done": 5})()
    assert explain_panel.panel(run, {})["steps"] == 4, "the first step is warming up"


def test_what_copies_wait_for_between_steps_is_called_by_its_name():
    spec = preset("allreduce-ring").spec
    averaging = explanation(spec, rows(spec, between_ms=300, exposed_share=0.8))
    assert "averaging gradients" in averaging["words"] and averaging["causes"][0]["title"] == "Averaging gradients"
    assert "between steps" in explanation(spec, rows(spec, between_ms=300, exposed_share=0.1))["words"]
