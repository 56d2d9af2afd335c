"""The views on the network: what the server gives them."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.http import Http404

from dashboard.charts import expert_rows, learning
from dashboard.charts.panels import collectives, experts, panels_of, topology
from tests.unit.frames import frame_of
from trainer.collectives.plans import ALGORITHMS, plan_of
from trainer.presets import preset
from trainer.spec import parse

VECTOR = json.loads((Path(__file__).parent / "vectors" / "ring_allreduce_4.json").read_text())


def asked(panel, spec, **fields):
    return json.loads(json.dumps(panel(SimpleNamespace(spec=spec, id="abcdefghjk"), fields)))


def letters(bits):
    return "".join(letter for rank, letter in enumerate("abcd") if bits & 1 << rank)


def test_the_player_of_four_ranks_on_a_ring_shows_the_textbooks_states():
    found = asked(collectives.panel, preset("allreduce-ring").spec, collective="all_reduce", algorithm="ring", ranks="4")
    tables = [VECTOR["start"], *(step["after"] for step in VECTOR["reduce_scatter"] + VECTOR["all_gather"])]
    shown = [[list(map(letters, held)) for held in state] for state in found["states"]]
    assert shown == [list(table.values()) for table in tables]


@pytest.mark.parametrize(("collective", "algorithm"), [
    (collective, algorithm) for collective in collectives.PLAYED for algorithm in ALGORITHMS[collective]])
def test_every_algorithm_can_be_played(collective, algorithm):
    found = collectives.played(collective, algorithm, "6")
    assert len(found["states"]) == len(found["steps"]) + 1 == len(plan_of(collective, algorithm, 6).steps) + 1
    assert all(len(held) == found["chunks"] for state in found["states"] for held in state)


@pytest.mark.parametrize(("ask", "words"), [
    (("all_reduce", "bruck", "4"), "There is no bruck"), (("all_reduce", "ring", "17"), "2 to 16"),
    (("all_to_all", "ring", "9"), "2 to 8"), (("all_reduce", "ring", ""), "Nothing was given"),
    (("barrier", "ring", "4"), "no ring"),
])
def test_what_cannot_be_played_is_said(ask, words):
    with pytest.raises(Http404, match=words):
        collectives.played(*ask)


def test_mirrored_places_are_a_group_to_look_at():
    spec = parse({"grid": {"pp": 4, "dp": 2}, "schedule": {"name": "dualpipe"}, "batch": 32})
    assert asked(topology.panel, spec)["groups"] == ["dp", "pp", "mirror", "dp×pp", "dp×mirror"]
    assert asked(topology.panel, spec, group="mirror")["groups"] == [[0, 3], [1, 2], [4, 7], [5, 6]]
    assert asked(collectives.panel, spec, groups="dp×mirror")["groups"]["dp×mirror"]["members"] == [0, 3, 4, 7]


def test_a_ceiling_is_that_of_the_slowest_link_between_neighbours():
    spec = preset("tensor-across-servers").spec  # two servers of two: InfiniBand between them
    found = asked(collectives.panel, spec, groups="tp,all")["groups"]
    assert found["tp"]["ceiling"]["word"] == "InfiniBand NDR"
    assert found["tp"]["ceiling"]["bytes_per_second"] == 50e9 / spec.links.slow_down / spec.links.size_factor
    assert found["tp"]["bus_share"]["all_reduce"] == 2 * 3 / 4
    assert found["all"]["ranks"] == 4
    assert asked(collectives.panel, preset("tensor").spec, groups="tp")["groups"]["tp"]["ceiling"] is None


def test_the_topology_of_1024_ranks():
    spec = parse({"model": {"name": "gpt", "layers": 8, "width": 64, "heads": 8, "context": 32}, "batch": 1024,
                  "grid": {"dp": 16, "pp": 8, "tp": 8}, "schedule": {"micro_batches": 8}, "links": {"kind": "real"},
                  "pace": {"kind": "paced"}})
    found = asked(topology.panel, spec)
    assert len(found["servers"]) == 1024 and max(found["servers"]) == 127
    assert found["groups"] == ["dp", "pp", "tp", "dp×pp", "dp×tp", "pp×tp", "dp×pp×tp"]
    whole = asked(topology.panel, spec, group="dp×pp×tp")
    assert whole["groups"] == [list(range(1024))]
    assert len(whole["pairs"]["ring"]) == 1024 and len(whole["pairs"]["tree"]) == 1023


def test_experts_are_shown_by_layer_and_step(monkeypatch):
    spec = preset("experts").spec
    counters = [(f"expert_{kind}/1/{expert}", 10.0 * expert + step, step, 0) for kind in ("load", "dropped")
                for expert in range(spec.model.experts) for step in range(80)]
    monkeypatch.setattr(expert_rows, "recent_frames", lambda run, ranks: [frame_of(0, 1, [], 0, counters)])
    found = asked(experts.panel, spec)
    assert found["steps"] == list(range(80 - expert_rows.STEPS, 80))
    (layer,) = found["layers"]
    assert layer["layer"] == 1 and layer["load"][-1][2] == 20 + 79 and layer["penalty"][-1] is None


def test_tokens_are_added_up():
    spec = preset("experts").spec
    rows = [{"step": step, "samples": 16, "learning_rate": 0.1, "grad_norm": None} for step in range(3)]
    assert learning.tokens(spec, rows).figure["data"][0]["y"] == [n * 16 * spec.model.context for n in (1, 2, 3)]
    assert "0.1 at step 2" in learning.learning_rate(spec, rows).text
    unknown = learning.grad_norm(spec, rows)
    assert "Known where gradients are clipped" in unknown.text
    assert "clipped" in unknown.figure["layout"]["annotations"][0]["text"]
    assert "none is known yet" in learning.grad_norm(spec, []).text


def test_a_job_has_the_views_that_fit_it():
    keys = {one.key for one in panels_of(preset("ddp-digits").spec)}
    assert {"collectives", "topology", "stragglers", "learning"} <= keys and "experts" not in keys
    assert "experts" in {one.key for one in panels_of(preset("experts").spec)}
    assert "topology" not in {one.key for one in panels_of(parse({}))}
