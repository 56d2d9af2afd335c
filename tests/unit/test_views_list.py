import re
from dataclasses import replace
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.runs import fleet, services
from dashboard.runs.models import Run, State
from dashboard.runs.rows import A_PAGE
from trainer.presets import PRESETS


def page(client, address="/"):
    return unescape(client.get(address).content.decode())


def launch(people, who="member", preset="pipeline-1f1b", **fields):
    run = services.launch(PRESETS[preset].spec, people.user(who))
    Run.objects.filter(pk=run.pk).update(**fields)
    return run


def test_the_list_shows_a_run_by_all_that_matters(people, workers):
    Run.objects.all().delete()
    run = launch(people, preset="pipeline-x-data", state=State.RUNNING, steps_done=12,
                 figures={"bubble_share": 0.1312, "bubble_share_theory": 1 / 9, "loss_last": 2.31842})
    text = page(people.client("member"))
    for shown in (run.name, run.pk, "Running", "2 stages × 2 copies", "1F1B · 8 micro-batches", "13.1 %", "theory 11.1 %",
                  "2.318", "12 / 30", "just now", "member"):
        assert shown in text


def test_a_job_without_a_pipeline_has_no_theory_to_hold_its_bubble_against(people, workers):
    Run.objects.all().delete()
    launch(people, preset="ddp-digits", figures={"bubble_share": 0.0442, "bubble_share_theory": 0.0})
    text = page(people.client("member"))
    assert "4.4 %" in text and "theory" not in text


def test_the_number_of_queries_does_not_grow_with_the_runs(people, workers):
    client = people.client("owner")
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            client.get("/")
        counts.append(len(queries))
        for number in range(12):
            launch(people, state=State.QUEUED if number % 2 else State.FINISHED)
    assert counts[0] == counts[1]


def test_old_runs_are_on_further_pages(people, workers):
    for _ in range(A_PAGE):
        launch(people)
    Run.objects.filter(pk=people.run.pk).update(created_at=timezone.now() - timedelta(days=3))
    client = people.client("member")
    assert people.run.pk not in page(client)
    second = page(client, "/?page=2")
    assert people.run.pk in second
    assert "3 d ago" in second
    assert people.run.pk in page(client, "/?page=99999")
    assert people.run.pk not in page(client, "/?page=x")


def test_one_sees_ones_own_runs_and_the_owner_all(people, workers):
    hers = launch(people, "outsider")
    assert hers.pk not in page(people.client("member"))
    assert hers.pk in page(people.client("owner"))
    assert people.run.pk not in page(people.client("outsider"))


def test_an_empty_list_says_what_to_do(people, workers):
    Run.objects.all().delete()
    text = page(people.client("member"))
    assert "No run yet" in text
    assert 'href="/launch/"' in text


def test_a_waiting_run_shows_its_place_among_all_that_wait(people, workers):
    Run.objects.all().delete()
    launch(people, "owner")
    mine = launch(people)
    launch(people)
    places = re.findall(r"(next in the queue|no\. \d+ in queue)", page(people.client("member")))
    assert places == ["no. 3 in queue", "no. 2 in queue"]
    assert services.place_in_queue(mine) == 2


def test_the_list_asks_again_only_while_something_moves(people, workers):
    client = people.client("member")
    assert 'data-moves="yes"' in page(client, "/rows/")
    Run.objects.update(state=State.FINISHED, sealed_at=timezone.now())
    assert 'data-moves="no"' in page(client, "/rows/")
    workers.clear()
    assert 'data-moves="yes"' in page(client, "/rows/")


def test_a_failed_run_says_why(people, workers):
    Run.objects.update(state=State.FAILED, reason="Rank 2 was killed by SIGKILL in step 7.")
    assert "Rank 2 was killed by SIGKILL in step 7." in page(people.client("member"))


def test_names_are_shown_as_text(people, workers):
    Run.objects.update(name="<script>alert(1)</script>")
    assert "<script>alert(1)" not in people.client("member").get("/").content.decode()


def test_the_banner_shows_each_worker(people, workers):
    text = page(people.client("member"))
    for shown in ("w1", "ready", "2 cores", "no GPU", "12 of 16 rank slots free"):
        assert shown in text


def test_the_banner_says_what_a_busy_worker_does(people, workers):
    workers[:] = [replace(workers[0], runs=["a"], ranks_free=0), replace(workers[0], runs=["b", "c"])]
    text = page(people.client("member"))
    for shown in ("runs 1 job<", "takes no more now", "runs 2 jobs<", "12 of 16 rank slots free"):
        assert shown in text
    assert "0 of 16" not in text


def test_the_banner_says_that_no_worker_is_there(people, workers):
    workers.clear()
    assert "No worker is there" in page(people.client("member"))


def test_the_banner_says_that_redis_is_away(people, monkeypatch):
    def away(client=None):
        raise fleet.FleetUnknown("connection refused")

    monkeypatch.setattr(fleet, "workers", away)
    assert "Redis does not answer" in page(people.client("member"))


@pytest.mark.parametrize("picture", [b"", b"\x63nonsense"])
def test_a_picture_that_cannot_be_read_is_left_out(people, workers, picture):
    Run.objects.update(picture=picture)
    assert people.client("member").get("/").status_code == 200
