"""Charts: figures that Plotly accepts, thinned without losing what they show, for those who may see the run."""

import json
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from dashboard.charts import bubble, decimate, loss
from tests.people import EVERYBODY, THOSE_WHO_SEE, gather
from trainer.folder import run_folder, store_folder
from trainer.presets import PRESETS, preset
from trainer.trace.store import StoreWriter

SPEC = preset("pipeline-1f1b").spec
CHARTS = {"loss": loss.chart, "bubble": bubble.chart}


def rows(steps):
    return [{"step": step, "loss": 5 / (step + 1), "bubble_share": 0.28 + 0.01 * (step % 3)} for step in range(steps)]


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize("steps", [0, 1, 30, 5000])
@pytest.mark.parametrize("key", PRESETS)
def test_plotly_accepts_every_figure(name, steps, key):
    answer = json.loads(json.dumps(CHARTS[name](PRESETS[key].spec, rows(steps)).as_dict()))
    figure = go.Figure(answer["figure"])
    assert figure.layout.title.text and figure.layout.xaxis.title.text and figure.layout.yaxis.title.text
    assert len(figure.data) <= 2 and answer["text"].endswith(".")


def test_a_figure_that_plotly_does_not_know_would_be_noticed():
    figure = loss.chart(SPEC, rows(3)).figure
    figure["layout"]["xaxis"]["titel"] = "Step"
    with pytest.raises(ValueError):
        go.Figure(figure)


def test_the_loss_keeps_its_values_and_says_them():
    chart = loss.chart(SPEC, rows(30))
    assert chart.figure["data"][0]["y"] == [5 / (step + 1) for step in range(30)]
    assert "5.0000 at step 0" in chart.text and "0.1667 at step 29" in chart.text


def test_the_bubble_stands_beside_its_theory_and_the_formula():
    chart = bubble.chart(SPEC, rows(30))
    measured, theory = chart.figure["data"]
    assert theory["y"] == [pytest.approx(3 / 11)] * 2 and theory["line"]["dash"] == "dash"
    assert len(measured["x"]) == 30
    for text in (chart.text, chart.figure["layout"]["annotations"][0]["text"]):
        assert "(p−1)/(m+p−1)" in text and "27.3%" in text


def test_a_job_without_a_pipeline_has_no_bubble_to_expect():
    chart = bubble.chart(preset("ddp-digits").spec, rows(3))
    assert "no pipeline, no bubble" in chart.text and "= 0.0%" not in chart.text


def test_what_is_not_known_yet_leaves_a_gap():
    known = [{"step": 0, "loss": 2.0}, {"step": 1, "loss": None}, {"step": 2}, {"step": 3, "loss": 1.0}]
    assert loss.chart(SPEC, known).figure["data"][0]["x"] == [0, 3]


def test_axes_stand_still_while_a_run_grows():
    assert loss.chart(SPEC, rows(2)).figure["layout"]["xaxis"] == loss.chart(SPEC, rows(30)).figure["layout"]["xaxis"]


def test_the_first_steps_of_a_long_job_fill_their_chart():
    long = SPEC.model_copy(update={"steps": 2000})
    for chart in (loss.chart, bubble.chart):
        assert [chart(long, rows(count)).figure["layout"]["xaxis"]["range"][1] for count in (0, 15, 64, 65, 1500)] == [
            63.5, 63.5, 63.5, 127.5, 1999.5]
    assert bubble.chart(long, rows(15)).figure["data"][1]["x"] == [-0.5, 63.5], "the theory reaches as far as the axis"


def test_a_job_of_one_step_has_one_mark_on_its_axis():
    assert loss.chart(SPEC.model_copy(update={"steps": 1}), rows(1)).figure["layout"]["xaxis"]["dtick"] == 1


def test_figures_carry_no_colours_of_their_own():
    for chart in CHARTS.values():
        text = json.dumps(chart(SPEC, rows(5)).figure)
        assert '"color"' not in text and "#" not in text


@pytest.mark.parametrize("count", [1, 2, 999, 1000, 1001, 5000, 123_457])
def test_thinning_keeps_ends_and_extremes(count):
    values = np.random.default_rng(count).normal(size=count)
    values[count // 3], values[count // 2] = 50, -50
    kept = decimate.indices(values)
    assert len(kept) <= 1000 and (np.diff(kept) > 0).all()
    assert {0, count - 1, int(values.argmin()), int(values.argmax())} <= set(kept.tolist())


@pytest.fixture
def people(db, settings, tmp_path):
    settings.CONF = replace(settings.CONF, redis_url="", home=tmp_path)
    people = gather(SPEC)
    store = StoreWriter(store_folder(run_folder(tmp_path, people.run.id)))
    store.add_steps(rows(7))
    store.passed("1-0")
    store.seal()
    return people


def address(people, who, name):
    return f"/s/{people.token}/charts/{name}.json" if who == "link_holder" else f"/runs/{people.run.id}/charts/{name}.json"


@pytest.mark.parametrize("who", EVERYBODY)
def test_who_may_see_a_chart(people, who):
    response = people.client(who).get(address(people, who, "loss"))
    if who in THOSE_WHO_SEE:
        assert response.status_code == 200
        assert response.json()["figure"]["data"][0]["x"] == list(range(7))
    else:
        assert response.status_code == (302 if who == "nobody" else 404)


def test_a_chart_that_is_not_drawn_and_a_link_that_does_not_open_are_not_found(people):
    assert people.client("member").get(address(people, "member", "weather")).status_code == 404
    assert people.client("nobody").get("/s/wrong/charts/loss.json").status_code == 404


def test_before_anything_is_recorded_a_chart_is_empty(people, settings, tmp_path):
    settings.CONF = replace(settings.CONF, home=tmp_path / "elsewhere")
    response = people.client("member").get(address(people, "member", "bubble"))
    assert response.json()["figure"]["data"][0]["x"] == [] and "None is known yet" in response.json()["text"]
