"""What an operator's tools ask: whether the server is ready, how much it does, and what it says."""

import json
import logging
import os
from dataclasses import replace

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import RequestFactory
from prometheus_client.parser import text_string_to_metric_families

from dashboard import logs
from dashboard.operating import health, metrics
from dashboard.operating.views import metrics as metrics_page
from dashboard.runs import services
from dashboard.runs.models import Run, State
from trainer.presets import PRESETS
from trainer.trace.manifest import Manifest, RankTotals
from workers.tally import Tally

TOKEN = "a-token-of-the-operator"


def samples(text):
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text) for sample in family.samples
    }


@pytest.fixture
def ready(db, home, monkeypatch):
    monkeypatch.setattr(health, "_redis", lambda: "ok")
    return home


def test_a_server_with_all_it_needs_is_ready(ready, client):
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {
        "ok": True, "failed": [], "database": "ok", "migrations": "ok", "redis": "ok", "store": "ok"})
    assert list((ready / "runs").iterdir()) == []


def test_without_redis_it_is_not_ready_and_says_so(db, home, client):
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["failed"]) == (503, ["redis"])


def test_a_store_that_cannot_be_written_is_named_with_the_reason(ready, client):
    (ready / "runs").write_text("a file where the folder should be")
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["failed"]) == (503, ["store"])
    assert answer.json()["store"] == f"cannot be written: {os.strerror(17)}"


@pytest.mark.django_db(transaction=True)
def test_a_migration_that_is_not_applied_is_counted(ready, client):
    call_command("migrate", "notices", "zero", verbosity=0)
    try:
        answer = client.get("/readyz")
    finally:
        call_command("migrate", "notices", verbosity=0)
    assert (answer.status_code, answer.json()["failed"]) == (503, ["migrations"])
    assert answer.json()["migrations"] == "1 not applied"


def test_a_database_that_is_away_is_named(ready, client, monkeypatch):
    monkeypatch.setattr(health, "_database", lambda: "away")
    assert client.get("/readyz").json()["failed"] == ["database"]


def ask(address="127.0.0.1", **headers):
    return metrics_page(RequestFactory(REMOTE_ADDR=address, **headers).get("/metrics"))


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.0.1", "::1"])
def test_who_asks_from_the_machine_itself_needs_no_token(people, address):
    assert ask(address).status_code == 200


@pytest.mark.parametrize("address", ["10.0.0.7", "93.184.216.34", "::ffff:10.0.0.7", "", "not an address"])
def test_who_asks_from_elsewhere_is_refused_and_told_what_would_do(people, address):
    answer = ask(address)
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert b"LOCKSTEP_METRICS_TOKEN" in answer.content and b"lockstep_runs" not in answer.content


@pytest.mark.parametrize("header", ["HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP", "HTTP_VIA"])
def test_what_came_through_a_proxy_on_this_machine_is_not_from_it(people, header):
    assert ask(**{header: "127.0.0.1"}).status_code == 401


def test_behind_a_proxy_that_says_nothing_nobody_is_local(people, settings):
    settings.CONF = replace(settings.CONF, origins=["https://lockstep.example.org"])
    assert ask().status_code == 401


@pytest.mark.parametrize("sent, status", [
    (f"Bearer {TOKEN}", 200), (f"bearer {TOKEN}", 200), (f"Bearer {TOKEN}x", 401), ("Bearer ", 401), (TOKEN, 401), ("", 401),
])
def test_the_token_opens_it_from_anywhere(people, settings, sent, status):
    settings.CONF = replace(settings.CONF, metrics_token=TOKEN)
    assert ask("10.0.0.7", HTTP_AUTHORIZATION=sent).status_code == status


def test_without_a_token_in_the_settings_an_empty_one_opens_nothing(people):
    assert ask("10.0.0.7", HTTP_AUTHORIZATION="Bearer ").status_code == 401


def test_runs_are_counted_by_state_and_by_queue_in_one_query(people, django_assert_num_queries):
    spec = PRESETS["ddp-digits"].spec
    for _ in range(12):
        services.launch(spec, None)
    deleted, gpu, *failed = Run.objects.exclude(pk=people.run.pk)[:4]
    Run.objects.filter(pk__in=[run.pk for run in (*failed, deleted)]).update(state=State.FAILED)
    Run.objects.filter(pk=deleted.pk).update(deleted_at=deleted.created_at)
    Run.objects.filter(pk=gpu.pk).update(device="cuda")
    with django_assert_num_queries(1):
        found = samples(ask().content.decode())
    assert (found["lockstep_runs", "queued"], found["lockstep_runs", "failed"], found["lockstep_runs", "running"]) == (10, 2, 0)
    assert (found["lockstep_queue_length", "cpu"], found["lockstep_queue_length", "cuda"]) == (9, 1)
    assert (found["lockstep_database_up",], found["lockstep_redis_up",], found["lockstep_viewers",]) == (1, 0, 0)


def test_requests_are_timed_by_page_and_not_by_address(people):
    client = people.client("member")
    before = samples(ask().content.decode()).get(("lockstep_request_seconds_count", "200", "GET", "run"), 0)
    client.get(f"/runs/{people.run.pk}/")
    client.get("/nowhere/at/all")
    client.generic("BREW", "/")
    text = ask().content.decode()
    found = samples(text)
    assert found["lockstep_request_seconds_count", "200", "GET", "run"] == before + 1
    assert found["lockstep_request_seconds_count", "404", "GET", "other"] >= 1
    assert people.run.pk not in text and "nowhere" not in text and "BREW" not in text


def test_what_the_recorder_says_of_itself_is_passed_on():
    beat = {"pid": 1, "host": "h", "lag": 0.25, "sealed": vars(Tally(10, 1, 900, 17))}
    found = {sample.name: sample.value for family in metrics._of_recorder(beat) for sample in family.samples}
    assert found == {
        "lockstep_recorder_up": 1, "lockstep_recorder_lag_seconds": 0.25, "lockstep_frames_sealed_total": 10,
        "lockstep_frames_lost_total": 1, "lockstep_spans_sealed_total": 900, "lockstep_spans_lost_total": 17}
    assert [family.samples[0].value for family in metrics._of_recorder(None)] == [0]


def test_a_tally_grows_by_what_was_sealed_meanwhile():
    before = Manifest(spans=100, ranks={0: RankTotals(sequence=5, recorded=100, stored=100)})
    after = Manifest(spans=160, bad_frames=1, ranks={
        0: RankTotals(sequence=9, recorded=180, stored=140, missing_frames=2), 1: RankTotals(sequence=1, recorded=20, stored=20)})
    assert Tally(1, 1, 1, 1).plus_growth(Tally.of(before), Tally.of(after)) == Tally(1 + 3, 1 + 3, 1 + 60, 1 + 40)


def test_the_process_itself_is_told_of(people):
    connection.ensure_connection()
    assert samples(ask().content.decode())["process_resident_memory_bytes",] > 1e6


@pytest.fixture
def written():
    """What is logged meanwhile, as the handler of json lines writes it."""
    class Kept(logging.Handler):
        lines: list = []

        def emit(self, record):
            self.lines.append(json.loads(self.format(record)))

    handler = Kept()
    handler.lines = []
    handler.setFormatter(logs.JsonLines())
    handler.addFilter(logs.AddRun())
    logging.getLogger().addHandler(handler)
    logs.now_about("")  # other tests look at runs outside of any request
    yield handler.lines
    logging.getLogger().removeHandler(handler)


def test_a_line_is_an_object_and_names_the_run_it_is_about(written):
    log = logging.getLogger("somewhere.else")
    with logs.about_run("abc"):
        with logs.about_run("def"):
            log.warning("in\nside %s", "“quoted”")
        log.warning("after")
    try:
        raise ValueError("boom")
    except ValueError:
        log.exception("caught")
    inside, after, caught = written
    assert (inside["run"], after["run"], "run" in caught) == ("def", "abc", False)
    assert (inside["message"], inside["level"], inside["logger"]) == ("in\nside “quoted”", "WARNING", "somewhere.else")
    assert inside["process"] == os.getpid() and inside["time"].endswith("+00:00")
    assert "ValueError: boom" in caught["exception"]


@pytest.mark.parametrize("address", ["/runs/{run}/", "/s/{token}/"])
def test_what_a_request_logs_is_about_its_run_however_it_was_reached(people, written, monkeypatch, address):
    from dashboard.runs.views import run as view

    def broken(*_args, **_kwargs):
        raise RuntimeError("the view broke")

    monkeypatch.setattr(view, "render", broken)
    client = people.client("member")
    client.raise_request_exception = False
    assert client.get(address.format(run=people.run.pk, token=people.token)).status_code == 500
    logging.getLogger("later").warning("about nothing")
    errors = [line for line in written if line["level"] == "ERROR"]
    assert errors and {line.get("run") for line in errors} == {people.run.pk}
    assert all("run" not in line for line in written if line["logger"] == "later")
