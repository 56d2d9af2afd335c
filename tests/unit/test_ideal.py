"""A step's ideal, as the page asks for it."""

import pytest

from dashboard.runs.ideal import MOST_CHUNKS, NoIdeal, ideal
from trainer.spec import parse


def job(batch=32, **schedule):
    pace = {"kind": "paced", "forward_ms": 10, "backward_ms": 20}
    return parse({"batch": batch, "grid": {"pp": 4}, "schedule": {"name": "1f1b", **schedule}, "pace": pace})


def test_it_is_the_schedules_own_timeline():
    found = ideal(job(micro_batches=8), {})
    assert found["makespan_ms"] == pytest.approx((8 + 3) * 30)  # (m + p − 1)(F + B)
    assert len(found["bars"]) == 4 * 8 * 2
    assert found["bars"][0] == [0, "F", 0, 0, 0, 10]


def test_measured_durations_take_the_place_of_modelled_ones():
    assert ideal(job(micro_batches=8), {"F": "1.5", "B": "2.5"})["makespan_ms"] == pytest.approx(11 * 4)


@pytest.mark.parametrize("given", ["0", "-1", "nan", "soon", "1e12"])
def test_a_duration_that_is_none_is_refused_with_what_would_do(given):
    with pytest.raises(NoIdeal, match=r"F: .*a duration in ms, above 0"):
        ideal(job(micro_batches=8), {"F": given})


def test_a_job_too_large_to_simulate_in_a_request_is_told_so():
    with pytest.raises(NoIdeal, match=str(MOST_CHUNKS)):
        ideal(job(micro_batches=MOST_CHUNKS // 2, batch=MOST_CHUNKS // 2), {})


def test_owner_and_link_holder_are_given_it_and_others_are_not(people):
    answer = people.client("member").get(f"/runs/{people.run.pk}/ideal.json")
    assert answer.status_code == 200 and answer.json()["bars"]
    assert people.client("link_holder").get(f"/s/{people.token}/ideal.json").json() == answer.json()
    assert people.client("outsider").get(f"/runs/{people.run.pk}/ideal.json").status_code == 404


def test_a_bad_duration_is_answered_in_words(people):
    answer = people.client("member").get(f"/runs/{people.run.pk}/ideal.json?F=never")
    assert answer.status_code == 422 and "'never' was given" in answer.json()["error"]
