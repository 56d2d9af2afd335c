"""What the page, the socket and the API are told of a run."""

import json

import pytest

from dashboard.runs import services
from dashboard.runs.models import Run, State
from dashboard.runs.state import as_dict
from trainer.presets import PRESETS, preset

pytestmark = pytest.mark.django_db


def test_a_queued_run_says_its_place_and_what_it_will_be():
    services.launch(preset("pipeline-gpipe").spec, None)
    told = as_dict(services.launch(preset("pipeline-1f1b").spec, None))
    assert told["state"] == "queued" and told["place_in_queue"] == 2 and not told["has_ended"]
    assert told["steps"] == 30 and told["steps_done"] == 0 and told["ranks"] == 4
    assert told["grid"] == [{"dp": 0, "ep": 0, "pp": stage, "cp": 0, "tp": 0} for stage in range(4)]
    assert told["stages"] == [[0], [1], [2], [3]]
    assert told["theory"]["bubble_share"] == pytest.approx(3 / 11) and "(p−1)/(m+p−1)" in told["theory"]["formula"]
    assert told["created"] > 1.6e12 and told["started"] is told["ended"] is told["sealed"] is None
    assert told["spec"]["schedule"]["name"] == "1f1b"


def test_ranks_of_several_stages_say_which():
    told = as_dict(services.launch(preset("pipeline-zb-v").spec, None))
    assert told["stages"] == [[0, 7], [1, 6], [2, 5], [3, 4]]


def test_where_ranks_are_is_said_where_links_are_modelled(db):
    grid = {"dp": 2, "pp": 2, "tp": 2}
    assert as_dict(Run(spec_json={"grid": grid}), place=0)["places"] == {}
    links = {"links": {"kind": "modelled"}, "placement": {"gpus_per_server": 2, "servers_per_rack": 2}, "pace": {"kind": "paced"}}
    assert as_dict(Run(spec_json={"grid": grid, **links}), place=0)["places"] == {
        "server": [0, 0, 1, 1, 2, 2, 3, 3], "rack": [0, 0, 0, 0, 1, 1, 1, 1],
    }


def test_a_run_that_failed_says_when_and_why():
    run = services.launch(preset("pipeline-1f1b").spec, None)
    services.claim(run.id, "w1")
    services.move(run.id, State.FAILED, reason="Rank 2 was killed.", failure={"rank": 2, "signal": "SIGKILL"})
    run.refresh_from_db()
    told = as_dict(run)
    assert told["has_ended"] and told["reason"] == "Rank 2 was killed." and told["failure"]["rank"] == 2
    assert told["worker"] == "w1" and told["place_in_queue"] == 0
    assert told["created"] <= told["started"] <= told["ended"]


@pytest.mark.parametrize("key", PRESETS)
def test_it_is_json_at_the_cost_of_one_query(key, django_assert_max_num_queries):
    run = services.launch(preset(key).spec, None)
    with django_assert_max_num_queries(1):
        json.dumps(as_dict(run))
