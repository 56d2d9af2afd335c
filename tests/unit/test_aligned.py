"""One step of several runs, spans counted from the step's start."""

import pytest

from dashboard.runs import aligned, services
from tests.unit.test_pictures import MS, stored
from trainer.folder import run_folder, store_folder
from trainer.presets import PRESETS
from trainer.trace.kinds import Kind


@pytest.fixture
def pair(people, home):
    """The member's runs of 5 and 7 steps of GPipe over four ranks."""
    other = services.launch(PRESETS["pipeline-gpipe"].spec, people.user("member"), team=people.team)
    runs = [people.run, other]
    for run, steps in zip(runs, (5, 7), strict=True):
        stored(store_folder(run_folder(home, run.pk)), steps=steps)
    return runs


def test_the_last_step_that_all_have_is_shown_and_every_span_of_it_once(pair):
    found = aligned.aligned(pair)
    assert (found["step"], found["first"], found["last"]) == (4, 0, 4)
    for run in found["runs"]:
        spans = run["spans"]
        assert {len(column) for column in spans.values()} == {4 * 16}
        assert run["left_out"] == 0 and run["length_ns"] == 11 * 60 * MS
        at = list(zip(spans["rank"], spans["kind"], spans["micro_batch"], strict=True)).index((1, Kind.FORWARD, 2))
        assert (spans["start_ns"][at], spans["duration_ns"][at]) == (3 * 20 * MS, 20 * MS)
        assert min(spans["start_ns"]) == 0


def test_what_is_too_much_is_counted_and_the_longest_are_kept(pair, monkeypatch):
    monkeypatch.setattr(aligned, "MOST_SPANS", 40)
    run = aligned.aligned(pair)["runs"][0]
    assert (len(run["spans"]["rank"]), run["left_out"]) == (40, 24)
    assert set(run["spans"]["kind"]) == {Kind.FORWARD, Kind.BACKWARD} and run["spans"]["kind"].count(Kind.BACKWARD) == 32


def test_runs_without_a_step_in_common_have_none(pair, people):
    waiting = services.launch(PRESETS["ddp-digits"].spec, people.user("member"))
    assert aligned.aligned([pair[0], waiting]) == {"step": None, "first": None, "last": None, "runs": []}


@pytest.mark.parametrize("step, words", [("5", "0 to 4"), ("x", "the number of a step"), ("-1", "the number of a step"),
                                         ("9" * 20, "the number of a step"), ("²", "the number of a step")])
def test_a_step_that_one_does_not_have_is_refused_in_words(people, pair, step, words):
    query = "&".join(f"run={run.pk}" for run in pair)
    answer = people.client("member").get(f"/runs/compare/step.json?{query}&step={step}")
    assert answer.status_code == 422 and words in answer.json()["error"]
    assert people.client("member").get(f"/runs/compare/step.json?{query}&step=3").json()["step"] == 3
