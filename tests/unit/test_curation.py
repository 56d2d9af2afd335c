"""What people make of runs: one by one, from the list, and by the API."""

import json
from datetime import timedelta
from html import unescape

import pytest
from django.utils import timezone

from dashboard.runs import curation, links, services
from dashboard.runs.models import Run, RunTag, SavedView, State
from trainer.folder import run_folder
from trainer.presets import PRESETS
from trainer.trace import stream


@pytest.fixture
def client(people, workers):
    return people.client("member")


@pytest.fixture
def ended(people):
    """Three more runs of the member's, which have ended."""
    runs = [services.launch(PRESETS["ddp-digits"].spec, people.user("member")) for _ in range(3)]
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(state=State.FINISHED)
    return [Run.objects.get(pk=run.pk) for run in runs]


def bulk(client, do, runs, **more):
    return client.post("/bulk/", {"do": do, "run": [run.pk for run in runs], **more}, follow=True)


def words(answer):
    return unescape(answer.content.decode())


def patch(client, run, **body):
    return client.patch(f"/api/v1/runs/{run.pk}", json.dumps(body), content_type="application/json")


def test_a_run_is_named_noted_tagged_and_pinned(client, people):
    run = people.run
    client.post(f"/runs/{run.pk}/change/", {"name": " Baseline ", "note": "one\r\ntwo", "tags": "Slow, odd slow"})
    client.post(f"/runs/{run.pk}/change/", {"pinned": "yes"})
    run.refresh_from_db()
    assert (run.name, run.note, [tag.name for tag in run.tags.all()]) == ("Baseline", "one\ntwo", ["odd", "slow"])
    assert run.pinned_at is not None
    client.post(f"/runs/{run.pk}/change/", {"pinned": "no", "tags": ""})
    run.refresh_from_db()
    assert (run.pinned_at, run.tags.count(), run.name) == (None, 0, "Baseline")


@pytest.mark.parametrize("given, field", [
    ({"name": " "}, "name"), ({"name": "x" * 121}, "name"), ({"name": "a\nb"}, "name"), ({"note": "x" * 4001}, "note"),
    ({"tags": ["a b"]}, "tags"), ({"tags": ["x" * 41]}, "tags"), ({"tags": ["<b>"]}, "tags"),
    ({"tags": [str(number) for number in range(21)]}, "tags"),
    ({"pinned": "perhaps"}, "pinned"), ({"colour": 1}, "colour"), ({"tags": "a"}, "tags"),
])
def test_a_change_that_does_not_fit_names_its_field_and_changes_nothing(client, people, given, field):
    answer = patch(client, people.run, archived=True, **given)
    assert (answer.status_code, answer["Content-Type"]) == (422, "application/problem+json")
    assert answer.json()["errors"][0]["field"] == field
    assert Run.objects.get().archived_at is None


def test_a_change_by_the_api(client, people):
    answer = patch(client, people.run, name="x", tags=["b", "a"], pinned=True, archived=True, note="n").json()
    assert {key: answer[key] for key in ("name", "tags", "pinned", "archived", "note", "owner")} == {
        "name": "x", "tags": ["a", "b"], "pinned": True, "archived": True, "note": "n", "owner": "member"}


def test_names_notes_and_tags_are_shown_as_text(client, people):
    curation.change(people.run, {"name": "<script>alert(1)</script>", "note": "<img src=x onerror=alert(1)>", "tags": ["a&b"]})
    for address in ("/", f"/runs/{people.run.pk}/", f"/s/{people.token}/"):
        html = client.get(address).content.decode()
        assert "<script>alert" not in html
        assert "<img src=x" not in html


def test_what_is_deleted_is_seen_by_nobody_and_can_come_back(client, people, ended):
    run = ended[0]
    _, token = links.share(run, None)
    answer = bulk(client, "delete", [run])
    assert "1 run deleted" in words(answer)
    for address in (f"/runs/{run.pk}/", f"/api/v1/runs/{run.pk}", f"/s/{token}/", f"/runs/{run.pk}/charts/loss.json"):
        assert client.get(address).status_code == 404
    assert run.pk not in words(client.get("/"))
    assert run.pk in words(client.get("/?q=is:deleted"))
    assert run.pk not in words(people.client("outsider").get("/?q=is:deleted"))
    bulk(client, "restore", [run])
    assert client.get(f"/runs/{run.pk}/").status_code == client.get(f"/s/{token}/").status_code == 200


def test_undo_is_offered_once(client, ended):
    answer = bulk(client, "delete", ended)
    assert "3 runs deleted" in words(answer)
    assert all(f'name="run" value="{run.pk}"' in words(answer) for run in ended)
    assert "runs deleted" not in words(client.get("/"))


def test_what_has_not_ended_is_not_deleted(client, people, ended):
    answer = bulk(client, "delete", [people.run, ended[0]])
    assert "1 run not deleted: stop" in words(answer)
    assert list(Run.objects.filter(deleted_at=None)) == [*reversed(ended[1:]), people.run]


def test_deleting_and_restoring_by_the_api(client, people, ended):
    path = f"/api/v1/runs/{ended[0].pk}"
    assert client.delete(path).status_code == 204
    assert client.delete(path).status_code == client.get(path).status_code == 404
    assert people.client("outsider").post(f"{path}/restore").status_code == 404
    assert client.post(f"{path}/restore").json()["id"] == ended[0].pk
    answer = client.delete(f"/api/v1/runs/{people.run.pk}")
    assert (answer.status_code, answer.json()["title"]) == (409, "It has not ended: stop it first, then delete it.")


def test_a_run_that_was_deleted_long_ago_is_removed_with_its_files(people, ended, home, monkeypatch):
    old, young, kept = ended
    for run in ended:
        (run_folder(home, run.pk) / "store").mkdir(parents=True)
    Run.objects.filter(pk=old.pk).update(deleted_at=timezone.now() - curation.KEPT_DELETED - timedelta(seconds=1))
    curation.delete(young)
    forgotten = []
    monkeypatch.setattr(stream, "forget", lambda client, run_id: forgotten.append(run_id))
    assert curation.purge(home, client=None) == forgotten == [old.pk]
    assert [run_folder(home, run.pk).exists() for run in ended] == [False, True, True]
    assert set(Run.objects.all()) == {young, kept, people.run}


def test_ticked_runs_are_stopped_tagged_and_archived_within_ones_rights(client, people, ended):
    hers = services.launch(PRESETS["ddp-digits"].spec, people.user("outsider"))
    every = [people.run, hers, *ended]
    assert "1 run asked to stop" in words(bulk(client, "stop", every))
    assert "4 runs tagged old, odd" in words(bulk(client, "tag", every, tag="old, odd"))
    bulk(client, "tag", every, tag="odd")
    assert RunTag.objects.count() == 8
    assert "a word of up to 40" in words(bulk(client, "tag", every, tag="a<b"))
    bulk(client, "archive", every)
    assert set(Run.objects.filter(archived_at=None)) == {hers}
    assert Run.objects.get(pk=hers.pk).state == State.QUEUED
    bulk(client, "unarchive", ended)
    assert Run.objects.filter(archived_at=None).count() == 4


def test_ticked_runs_are_compared_at_an_address_that_can_be_handed_on(client, ended):
    answer = bulk(client, "compare", ended[:2], address="state:finished", tag="", csrfmiddlewaretoken="secret")
    assert answer.redirect_chain == [(f"/runs/compare/?run={ended[0].pk}&run={ended[1].pk}", 302)]
    assert "2 runs side by side" in words(answer)


def test_a_bulk_that_makes_no_sense_does_no_harm(client, people):
    assert client.post("/bulk/", {"do": "explode", "run": people.run.pk}).status_code == 404
    assert "No run was ticked" in words(bulk(client, "archive", []))


@pytest.mark.parametrize("address", ["//evil.example", "https://evil.example/?q=x", "next=//evil.example&q=a"])
def test_the_way_back_leads_to_the_list_alone(client, people, address):
    answer = client.post("/bulk/", {"do": "archive", "run": people.run.pk, "address": address})
    assert answer["Location"] in ("/", "/?q=a")


def test_views_are_saved_shown_changed_and_forgotten(client, people):
    save = {"name": "slow ones", "address": "q=bubble>30%25&sort=-bubble&columns=bubble.loss&evil=1"}
    answer = client.post("/views/", save)
    assert answer["Location"] == "/?q=bubble%3E30%25&sort=-bubble&columns=bubble.loss"
    view = SavedView.objects.get()
    text = words(client.get(answer["Location"]))
    assert f'href="?{view.address}" aria-current="page">slow ones' in text
    client.post("/views/", save | {"address": "q=state:failed"})
    assert SavedView.objects.get().address == "q=state%3Afailed"
    assert "slow ones" not in words(people.client("outsider").get("/"))
    client.post(f"/views/{view.pk}/forget/")
    assert not SavedView.objects.exists()


def test_columns_sorting_and_search_are_in_the_address(client, people):
    Run.objects.update(figures={"bubble_share": 0.3, "step_seconds": 0.66})
    text = words(client.get("/?q=state:queued&sort=-bubble&columns=step.bubble"))
    assert ">Step time<" in text and ">Last loss<" not in text
    assert 'aria-sort="descending"' in text
    assert 'href="/?q=state%3Aqueued&sort=bubble&columns=bubble.step"' in text
    assert ">Last loss<" not in words(client.get("/?column=step&column=bubble"))


def test_an_unknown_condition_is_complained_of_beside_the_box(client):
    text = words(client.get("/?q=colour:red"))
    assert "there is no such field" in text
    assert 'aria-invalid="true"' in text


def test_the_same_job_under_another_schedule_in_one_press(client, people):
    answer = client.post(f"/runs/{people.run.pk}/again/", {"schedule": "gpipe"})
    run = Run.objects.latest("created_at")
    assert answer["Location"] == f"/runs/{run.pk}/"
    assert (run.schedule, run.name, run.owner) == ("gpipe", "Pipeline, 1F1B · GPipe", people.user("member"))
    refused = client.post(f"/runs/{people.run.pk}/again/", {"schedule": "interleaved"}, follow=True)
    assert "do not divide" in words(refused)
    assert Run.objects.count() == 2
