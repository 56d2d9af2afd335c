"""Runs side by side: what differs, by how much, and whether it is more than the steps' scatter."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest
from scipy import stats

from dashboard.charts import losses
from dashboard.runs import comparison, services
from dashboard.runs.models import Run
from dashboard.runs.significance import student_p, welch_p
from dashboard.runs.variants import variant, variants
from trainer.complaints import SpecError
from trainer.folder import run_folder, store_folder
from trainer.presets import PRESETS
from trainer.trace.store import StoreWriter


def rows(seed, mean_ms, steps=60, loss=5.0):
    dice = np.random.default_rng(seed)
    return [{"step": step, "complete": True, "loss": loss / (step + 1), "bubble_share": 0.28, "exposed_share": 0.1,
             "samples_per_second": 48.0,
             "period_ns": int(1e6 * dice.normal(mean_ms, 5)) if step else 10**12} for step in range(steps)]


@pytest.fixture
def pair(people):
    """The member's 1F1B run, and the same under GPipe with twice the steps."""
    spec = PRESETS["pipeline-gpipe"].spec.model_copy(update={"steps": 60})
    other = services.launch(spec, people.user("member"))
    Run.objects.filter(pk=other.pk).update(figures={"loss_last": 2.0})
    Run.objects.filter(pk=people.run.pk).update(figures={"loss_last": 2.5})
    return [Run.objects.get(pk=people.run.pk), Run.objects.get(pk=other.pk)]


@pytest.mark.parametrize("seed", range(12))
def test_the_test_agrees_with_scipys(seed):
    dice = np.random.default_rng(seed)
    one = dice.normal(10, dice.uniform(0.1, 5), int(dice.integers(3, 400)))
    other = dice.normal(10 + dice.uniform(0, 1), dice.uniform(0.1, 5), int(dice.integers(3, 400)))
    expected = stats.ttest_ind(one, other, equal_var=False).pvalue
    assert welch_p(one.tolist(), other.tolist()) == pytest.approx(expected, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("freedom", [1, 2.5, 30, 1e4, 1e6])
@pytest.mark.parametrize("t", [0, 1e-6, 0.5, 2, 10, 200])
def test_students_distribution_agrees_with_scipys(t, freedom):
    assert student_p(t, freedom) == pytest.approx(2 * stats.t.sf(t, freedom), rel=1e-8, abs=1e-300)


def test_samples_without_scatter_or_of_too_few_values():
    assert welch_p([1.0] * 5, [1.0] * 9) == 1.0
    assert welch_p([1.0] * 5, [2.0] * 9) == 0.0
    assert welch_p([1.0, 2.0], [1.0] * 9) is None


def test_what_differs_in_the_jobs_comes_without_what_is_equal(pair):
    found = comparison.compare(pair, [[], []])
    assert {one.path: one.values for one in found.differences} == {"schedule.name": ["1f1b", "gpipe"], "steps": [30, 60]}


def test_a_field_that_a_model_does_not_have_is_none(people):
    digits = services.launch(PRESETS["ddp-digits"].spec, people.user("member"))
    found = comparison.compare([people.run, digits], [[], []])
    assert {one.path: one.values for one in found.differences}["model.heads"] == [4, None]


def line(found, key):
    return next(one for one in found.lines if one.key == key)


def test_a_difference_is_told_from_scatter_and_the_first_step_is_left_out(pair):
    for run, seconds in zip(pair, (0.1, 0.12), strict=True):
        run.figures["step_seconds"] = seconds
    found = line(comparison.compare(pair, [rows(1, 100), rows(2, 120)]), "step_seconds")
    assert (found.values, found.changes) == ([0.1, 0.12], [0, pytest.approx(0.2)])
    assert found.p[0] is None and found.p[1] < 1e-6
    assert found.cells[1][2] == "differs, p < 0.001"
    same = line(comparison.compare(pair, [rows(1, 100), rows(2, 100)]), "step_seconds")
    assert same.p[1] > comparison.SIGNIFICANT
    assert same.cells[1][2].startswith("within the scatter, p = ")


def test_steps_with_gaps_are_not_counted(pair):
    broken = rows(1, 100)
    broken[5] |= {"complete": False, "period_ns": 10**12}
    other = rows(2, 100)
    whole, with_gap = (line(comparison.compare(pair, [first, other]), "step_seconds").p[1] for first in (rows(1, 100), broken))
    assert with_gap == pytest.approx(whole, abs=0.1), "a step of 1,000 s would drown all others"


def test_figures_without_steps_have_a_change_and_no_p(pair):
    found = line(comparison.compare(pair, [[], []]), "loss_last")
    assert (found.values, found.changes, found.p) == ([2.5, 2.0], [0, pytest.approx(-0.2)], [None, None])
    assert found.cells == [("2.5", "", ""), ("2", "−20.0 %", "")]


def test_the_chart_of_losses_tells_by_more_than_colour_and_never_by_markup(pair):
    pair[0].name = "<b>bold</b>"
    answer = json.loads(json.dumps(losses.chart(pair, [rows(1, 1), []]).as_dict()))
    figure = go.Figure(answer["figure"])
    assert len({trace.line.dash for trace in figure.data}) == 2
    assert "<b>" not in json.dumps([trace["name"] for trace in answer["figure"]["data"]])
    assert answer["text"].endswith("none is known yet.")


@pytest.fixture
def client(people):
    return people.client("member")


def test_faults_and_emulated_times_are_in_words(people):
    member = people.user("member")
    runs = [services.launch(PRESETS[key].spec, member) for key in ("straggler", "pipeline-1f1b")]
    text = people.client("member").get("/runs/compare/?" + "&".join(f"run={run.pk}" for run in runs)).content.decode()
    assert "<td>rank 2 takes 1.5 times as long from step 8 on</td><td>none</td>" in text
    assert "All these runs' times are emulated" in text


def test_the_page_and_the_api_show_them(client, pair, home):
    for run, mean in zip(pair, (100, 120), strict=True):
        writer = StoreWriter(store_folder(run_folder(home, run.pk)))
        writer.passed("1-0")
        writer.add_steps(rows(1, mean))
        writer.seal(complete=True)
        Run.objects.filter(pk=run.pk).update(figures=run.figures | {"step_seconds": mean / 1000})
    query = "&".join(f"run={run.pk}" for run in pair)
    text = client.get(f"/runs/compare/?{query}").content.decode()
    for shown in ("schedule.name", "differs, p &lt; 0.001", "+20", pair[0].name, "Paced time."):
        assert shown in text
    answer = client.get(f"/api/v1/compare?{query}").json()
    assert [one["path"] for one in answer["differences"]] == ["schedule.name", "steps"]
    assert len(client.get(f"/runs/compare/loss.json?{query}").json()["figure"]["data"]) == 2


@pytest.mark.parametrize("query", ["", "run={0}", "run={0}&run={0}", "run={0}&run=b&run=c&run=d&run=e"])
def test_one_run_or_five_cannot_be_compared(client, pair, query):
    asked = query.format(pair[0].pk)
    assert client.get(f"/runs/compare/?{asked}").status_code == 422
    assert client.get(f"/runs/compare/loss.json?{asked}").status_code == 422
    assert client.get(f"/api/v1/compare?{asked}").status_code == 422


def test_a_run_of_another_is_none(people, pair):
    hers = services.launch(PRESETS["ddp-digits"].spec, people.user("outsider"))
    assert people.client("member").get(f"/runs/compare/?run={pair[0].pk}&run={hers.pk}").status_code == 404


def test_a_job_fits_other_schedules_or_it_is_said_why_not():
    found = {one.name: one for one in variants(PRESETS["pipeline-interleaved"].spec)}
    assert "interleaved" not in found
    assert (found["zb-v"].spec.schedule.chunks, found["gpipe"].spec.schedule.chunks) == (2, 1)
    thin = {one.name: one for one in variants(PRESETS["pipeline-1f1b"].spec)}
    assert thin["zb-v"].spec is None and "do not divide" in thin["zb-v"].why_not
    assert variants(PRESETS["ddp-digits"].spec) == []
    with pytest.raises(SpecError, match="no pipeline"):
        variant(PRESETS["ddp-digits"].spec, "gpipe")


def test_an_own_schedule_leaves_its_text_behind():
    assert variant(PRESETS["pipeline-own"].spec, "gpipe").schedule.csv == ""
