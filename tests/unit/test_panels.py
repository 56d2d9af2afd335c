"""The views beside the timeline: what the server gives them."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from dashboard.charts.panels import PANELS, panel, panels_of, pipeline
from dashboard.runs.intake import as_value, checked, with_changes
from trainer.presets import PRESETS, preset
from trainer.spec import parse

SLOTS = json.loads((Path(__file__).parent / "vectors" / "pipeline_slots_4x4.json").read_text())
PIPELINES = [key for key, one in PRESETS.items() if one.spec.grid.pp > 1]


def given(spec):
    return json.loads(json.dumps(pipeline.panel(SimpleNamespace(spec=spec), {})))


def test_the_slots_of_four_stages_and_four_micro_batches_are_the_textbooks():
    slots = given(parse({"grid": {"pp": 4}, "schedule": {"name": "gpipe", "micro_batches": 4}}))["slots"]
    assert [round(100 * share) for share in slots["active_share"]] == [slot["active_percent"] for slot in SLOTS["slots"]]
    for place, lane in enumerate(slots["lanes"]):
        name = SLOTS["stages"][place]
        for letter, field in (("F", "forward"), ("B", "backward")):
            drawn = {start + 1: micro_batch + 1 for own, _, micro_batch, start, _ in lane if own == letter}
            assert drawn == {slot["step"]: slot[field][name] for slot in SLOTS["slots"] if name in slot[field]}


@pytest.mark.parametrize("key", PIPELINES)
def test_a_pipelines_ideal_is_its_theory(key):
    found = given(preset(key).spec)
    own = found["alternatives"][0]
    assert found["ideal"]["bubble_share"] == pytest.approx(own["bubble_share"], abs=1e-12)
    assert found["ideal"]["length"] == own["step_ms"]
    assert sum(map(len, found["ideal"]["lanes"])) >= 2 * preset(key).spec.schedule.micro_batches * preset(key).spec.grid.pp
    for place in found["held"]:
        assert place["bound"] is None or place["peak"] <= place["bound"]


@pytest.mark.parametrize("key", PIPELINES)
def test_every_other_order_is_a_job_that_can_be_launched(key):
    for other in given(preset(key).spec)["alternatives"][1:]:
        spec = changed(preset(key).spec, other["sets"])
        assert (spec.schedule.name, spec.schedule.micro_batches) == (other["schedule"], other["micro_batches"])


def changed(spec, sets):
    return checked(with_changes(spec.model_dump(), {path: as_value(text) for path, text in sets.items()}))


def test_an_address_sets_fields_of_the_form(people):
    shown = people.client("member").get("/launch/", {"preset": "pipeline-own", "schedule.name": "gpipe", "schedule.csv": '""'})
    assert shown.status_code == 200 and shown.context["plan"].spec.schedule.name == "gpipe"


def test_an_address_that_sets_what_does_not_fit_shows_the_form_with_the_complaint(people):
    client = people.client("member")
    shown = client.get("/launch/", {"preset": "pipeline-1f1b", "grid.pp": "3"})
    assert shown.status_code == 422
    assert 'value="3"' in shown.content.decode() and "4 layers do not divide into 3 stages" in shown.content.decode()


def test_a_job_has_the_panels_that_fit_it():
    assert "pipeline" not in {one.key for one in panels_of(preset("ddp-digits").spec)}
    assert panel(preset("ddp-digits").spec, "pipeline") is None
    assert {one.key for one in PANELS} >= {"pipeline", "log"}
    assert all(one.tells.endswith(".") for one in PANELS)
