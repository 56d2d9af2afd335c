"""Stopping, sharing and logs of a run; what its page is given."""

import json
import re

import pytest

from dashboard.runs import services
from dashboard.runs.models import Run, ShareLink, State
from dashboard.runs.views.logs import TAIL_BYTES
from trainer.folder import log_file, run_folder
from trainer.presets import PRESETS

JSON = {"headers": {"accept": "application/json"}}


@pytest.fixture
def client(people):
    return people.client("member")


def test_the_page_is_given_what_its_script_reads_by(client, people):
    context = client.get(f"/runs/{people.run.pk}/").context
    assert context["run"]["id"] == people.run.pk
    assert (context["read_base"], context["socket_path"]) == (f"/runs/{people.run.pk}/", f"/ws/runs/{people.run.pk}/")
    assert context["access"].can_change
    assert list(context["share_links"]) == [people.link]
    assert json.loads(context["spec_json"]) == people.run.spec_json


def test_a_preset_says_what_to_look_at_and_a_changed_one_does_not(client, people):
    shows = PRESETS["pipeline-gpipe"].shows
    member = people.user("member")
    own = services.launch(PRESETS["pipeline-gpipe"].spec.model_copy(update={"name": "mine"}), member)
    changed = services.launch(PRESETS["pipeline-gpipe"].spec.model_copy(update={"steps": 7}), member)
    assert shows in client.get(f"/runs/{own.pk}/").content.decode()
    assert shows not in client.get(f"/runs/{changed.pk}/").content.decode()
    assert shows in client.get("/launch/?preset=pipeline-gpipe").content.decode().partition('id="plan"')[2]


def test_the_holder_of_a_link_gets_the_same_page_without_its_controls(people):
    response = people.client("link_holder").get(f"/s/{people.token}/")
    context = response.context
    assert (context["read_base"], context["socket_path"]) == (f"/s/{people.token}/", f"/ws/s/{people.token}/")
    assert not context["access"].can_change
    assert "share_links" not in context
    html = response.content.decode()
    for control in ("/stop/", "/share/", "take-back", f"/runs/{people.run.pk}/"):
        assert control not in html
    assert response["X-Robots-Tag"] == "noindex"
    assert response["Referrer-Policy"] == "same-origin"


def test_an_owner_who_opens_a_link_sees_what_its_holders_see(client, people):
    assert not client.get(f"/s/{people.token}/").context["access"].can_change


def test_a_waiting_run_is_stopped_at_once(client, people):
    assert client.post(f"/runs/{people.run.pk}/stop/")["Location"] == f"/runs/{people.run.pk}/"
    assert Run.objects.get(pk=people.run.pk).state == State.STOPPED


def test_a_running_run_is_asked_to_stop(client, people):
    Run.objects.update(state=State.RUNNING)
    response = client.post(f"/runs/{people.run.pk}/stop/", **JSON)
    assert (response.status_code, response.json()) == (200, {"state": "stopping", "stopped": True})


def test_there_is_nothing_to_stop_in_a_run_that_has_ended(client, people):
    Run.objects.update(state=State.FINISHED)
    response = client.post(f"/runs/{people.run.pk}/stop/", **JSON)
    assert (response.status_code, response.json()) == (409, {"state": "finished", "stopped": False})
    page = client.post(f"/runs/{people.run.pk}/stop/", follow=True)
    assert "There was nothing to stop: the run is finished." in page.content.decode()


def test_a_new_link_is_shown_once_and_opens_the_run(client, people):
    client.post(f"/runs/{people.run.pk}/share/")
    url = client.get(f"/runs/{people.run.pk}/").context["new_link"].url
    assert re.match(r"http://testserver/s/[\w-]{32}/\Z", url)
    assert client.get(f"/runs/{people.run.pk}/").context["new_link"] is None
    assert people.client("nobody").get(url).status_code == 200


def test_the_server_keeps_no_token(client, people):
    answer = client.post(f"/runs/{people.run.pk}/share/", **JSON)
    assert answer.status_code == 201
    token = answer.json()["url"].rstrip("/").rsplit("/", 1)[1]
    assert not ShareLink.objects.filter(token_digest__contains=token).exists()
    assert token not in json.dumps(dict(client.session))


def test_a_forged_cookie_shows_no_link(client, people):
    client.cookies["lockstep_new_link"] = "evil:1abc:signature"
    assert client.get(f"/runs/{people.run.pk}/").context["new_link"] is None


def test_taking_a_link_back_by_the_address_that_came_with_it(client, people):
    made = client.post(f"/runs/{people.run.pk}/share/", **JSON).json()
    assert people.client("nobody").get(made["url"]).status_code == 200
    assert client.post(made["take_back"], **JSON).json() == {"id": made["id"]}
    assert people.client("nobody").get(made["url"]).status_code == 404
    assert client.post(made["take_back"]).status_code == 404


def test_a_link_is_taken_back_only_through_its_own_run(client, people):
    other = Run.objects.create(owner=people.user("member"), name="other", spec_json=people.run.spec_json, device="cpu")
    assert client.post(f"/runs/{other.pk}/share/{people.link.pk}/take-back/").status_code == 404
    assert client.post(f"/runs/{people.run.pk}/share/{2**70}/take-back/").status_code == 404


def printed(people, home, data, rank=0):
    path = log_file(run_folder(home, people.run.pk), rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def test_a_log_is_plain_text(client, people, home):
    printed(people, home, "step 1 <b>≈</b>\n".encode())
    response = client.get(f"/runs/{people.run.pk}/logs/0/")
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response.content.decode() == "step 1 <b>≈</b>\n"
    assert people.client("link_holder").get(f"/s/{people.token}/logs/0/").content == response.content


def test_of_a_long_log_the_end_is_shown_from_the_start_of_a_line(client, people, home):
    lines = b"".join(b"line %06d\n" % number for number in range(10_000))
    printed(people, home, lines)
    first, *rest = client.get(f"/runs/{people.run.pk}/logs/0/").content.splitlines(keepends=True)
    assert first == b"(The last 64 KB of 120,000 bytes.)\n"
    assert lines.endswith(b"".join(rest))
    assert TAIL_BYTES - 12 <= len(b"".join(rest)) <= TAIL_BYTES
    assert rest[0].startswith(b"line ")


def test_a_log_of_broken_text_is_shown(client, people, home):
    printed(people, home, b"\xff\xfe ok\n")
    assert "ok" in client.get(f"/runs/{people.run.pk}/logs/0/").content.decode()


def test_a_rank_that_printed_nothing_and_a_rank_that_is_none(client, people):
    assert client.get(f"/runs/{people.run.pk}/logs/3/").content == b"(This rank has printed nothing.)\n"
    assert client.get(f"/runs/{people.run.pk}/logs/4/").status_code == 404
    assert client.get(f"/runs/{people.run.pk}/logs/-1/").status_code == 404
    assert client.get(f"/runs/{people.run.pk}/logs/{10**30}/").status_code == 404
