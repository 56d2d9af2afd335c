"""The memory of a rank as a chart: what the store holds of its latest steps, under what formulas say."""

import json
from dataclasses import replace

import plotly.graph_objects as go
import pytest

from dashboard.charts import memory
from dashboard.charts.memory_rows import MemoryRow
from tests.people import EVERYBODY, THOSE_WHO_SEE, gather
from tests.unit.frames import frame_of
from trainer.folder import run_folder, store_folder
from trainer.memory import predicted
from trainer.presets import PRESETS, preset
from trainer.trace.store import StoreWriter

SPEC = preset("pipeline-1f1b").spec
MS = 1_000_000


def rows(steps, kinds=memory.KINDS):
    """Of each kind four changes a step, after one another."""
    return [
        MemoryRow((step * 100 + change * 20 + at) * MS, kind, 1000.0 * (change + at), step)
        for step in range(steps) for change in range(4) for at, kind in enumerate(kinds)
    ]


@pytest.mark.parametrize("key", PRESETS)
@pytest.mark.parametrize("steps", [0, 1, 400])
def test_plotly_accepts_it(key, steps):
    answer = json.loads(json.dumps(memory.chart(PRESETS[key].spec, 0, rows(steps)).as_dict()))
    figure = go.Figure(answer["figure"])
    line = ["predicted at most"] if predicted(PRESETS[key].spec) else []
    assert [trace.name for trace in figure.data] == [*memory.KINDS, *line]
    assert all(len(trace.x) <= 1000 for trace in figure.data) and answer["text"].endswith(".")
    assert "#" not in json.dumps(answer["figure"])


def test_kinds_are_shown_at_the_same_moments_and_keep_their_values_in_between():
    changes = ((0, "weights", 4000), (10, "activations", 1000), (30, "activations", 3000))
    given = [MemoryRow(ms * MS, kind, size, 0) for ms, kind, size in changes]
    shown = {trace["name"]: (trace["x"], trace["y"]) for trace in memory.chart(SPEC, 2, given).figure["data"]}
    unit = 1e6 if predicted(SPEC)[2].total >= 1e6 else 1e3
    assert shown["weights"] == ([0, 10, 30], [4000 / unit] * 3)
    assert shown["activations"] == ([0, 10, 30], [1000 / unit, 1000 / unit, 3000 / unit])
    assert shown["predicted at most"][1] == [predicted(SPEC)[2].total / unit] * 2


def test_it_says_peaks_in_words():
    text = memory.chart(SPEC, 1, rows(2)).text
    assert text.startswith("The memory of rank 1 in its latest steps, at most ") and "Predicted at most: " in text


@pytest.fixture
def people(db, settings, tmp_path):
    settings.CONF = replace(settings.CONF, redis_url="", home=tmp_path)
    people = gather(SPEC)
    store = StoreWriter(store_folder(run_folder(tmp_path, people.run.id)))
    for sequence, step in enumerate(range(8), 1):
        for rank in (0, 1):
            own = [row for row in rows(8) if row.step == step]
            counters = [(f"memory/{row.kind}", row.bytes + rank, row.step, int(row.time_ns)) for row in own]
            store.add(frame_of(rank, sequence, [], counters=[*counters, ("loss", 1.0, step, 0)]), f"{sequence}-{rank}")
    store.seal(complete=True)
    return people


def address(people, who, rank):
    base = f"/s/{people.token}" if who == "link_holder" else f"/runs/{people.run.id}"
    return f"{base}/charts/memory.json?rank={rank}"


@pytest.mark.parametrize("who", EVERYBODY)
def test_who_may_see_it(people, who):
    response = people.client(who).get(address(people, who, 1))
    if who not in THOSE_WHO_SEE:
        assert response.status_code == (302 if who == "nobody" else 404)
        return
    weights = response.json()["figure"]["data"][0]
    assert weights["x"][-1] == 264, "three steps of 100 ms and no more"
    unit = 1e6 if predicted(SPEC)[1].total >= 1e6 else 1e3
    assert {round(value * unit) % 1000 for value in weights["y"]} == {1}, "of rank 1 alone"


@pytest.mark.parametrize("rank", ["4", "-1", "x", "²"])
def test_a_rank_that_is_not_there_is_not_found(people, rank):
    assert people.client("owner").get(address(people, "owner", rank)).status_code == 404


def test_before_anything_is_recorded_it_is_empty(people, settings, tmp_path):
    settings.CONF = replace(settings.CONF, home=tmp_path / "elsewhere")
    answer = people.client("member").get(address(people, "member", 0)).json()
    assert answer["figure"]["data"][0]["x"] == [] and "None is known yet" in answer["text"]
