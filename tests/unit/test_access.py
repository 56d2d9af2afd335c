"""Every address, for every person."""

import re
import secrets

import pytest
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from dashboard.accounts import teams, tokens
from dashboard.comments import services as comments
from dashboard.notices.models import Webhook
from dashboard.roles import Role
from dashboard.runs import services
from dashboard.runs.models import SavedView
from tests.answers import EMPTY, GET, LOGIN, OK, OPEN_POSTS, POST, UNKNOWN, api, of_run
from tests.people import EVERYBODY, gather
from trainer.presets import PRESETS

API = (
    "openapi-json", "openapi-view", "api-root", "presets", "list_runs", "show", "stop", "me", "workers", "steps", "log", "links",
    "give", "comments", "comment", "edit_comment", "delete_comment", "compare", "again", "restore", "take_back", "change",
    "delete", "share", "exports", "make", "export_file", "picture",
)
NAMESPACES = dict.fromkeys(API, "api:")
BODIES = {
    "runs-bulk": {"do": "archive"}, "again": {"schedule": "gpipe"}, "team-make": {"name": "new"},
    "comment": {"text": "look"}, "webhooks": {"url": "https://1.1.1.1/hook"},
    "team-invite": {"role": "viewer", "days": 7, "most_uses": 3}, "team-member": {"do": "role", "role": "viewer"},
}


def address(name, people):
    member = people.user("member")
    invitation, invitation_token = teams.invite(people.team, member, Role.VIEWER, 7, 5)
    values = {
        "run_id": people.run.pk, "token": people.token, "link_id": people.link.pk, "rank": 0,
        "key": "bubble" if name.startswith("idea") else "steps-csv",
        "name": "pipeline" if name.endswith("panel") else "loss",
        "hook_id": Webhook.objects.create(team=people.team, url="https://example.org/", secret="s").pk,
        "comment_id": comments.write(people.run, member, "first").pk,
        "team_id": people.team.pk, "invitation_id": invitation.pk, "user_id": people.user("viewer").pk,
        "token_id": tokens.make(member, "ci", ["read"])[0].pk,
        "view_id": SavedView.objects.create(user=member, name=secrets.token_hex(4), address="q=state:failed").pk,
    }
    values |= {"welcome": {"token": "x" * 64}, "invited": {"token": invitation_token}}.get(name, {})
    found = reverse(NAMESPACES.get(name, "") + name, kwargs={key: values[key] for key in patterns()[name].pattern.converters})
    if "compare" in name:
        other = services.launch(PRESETS["ddp-digits"].spec, member, team=people.team)
        return f"{found}?run={people.run.pk}&run={other.pk}"
    return found


def patterns(resolver=None):
    found = {}
    for one in (resolver or get_resolver()).url_patterns:
        if isinstance(one, URLResolver):
            found |= patterns(one)
        elif isinstance(one, URLPattern):
            found[one.name] = one
    return found


def told(response):
    """The status, or LOGIN for the way to the login page."""
    if response.status_code == 302 and response["Location"].startswith(reverse("login") + "?next="):
        return LOGIN
    return response.status_code


def test_the_table_knows_every_address():
    assert set(patterns()) == set(GET)


@pytest.mark.parametrize("name", GET)
def test_get(people, name):
    answers = {who: told(people.client(who).get(address(name, people))) for who in EVERYBODY}
    assert answers == dict(zip(EVERYBODY, GET[name], strict=True))


@pytest.mark.parametrize("who", EVERYBODY)
@pytest.mark.parametrize("name", POST)
def test_post(people, name, who):
    body = BODIES.get(name, {})
    as_json = {"content_type": "application/json"} if name in API else {}
    assert told(people.client(who).post(address(name, people), body, **as_json)) == POST[name][EVERYBODY.index(who)]


@pytest.mark.parametrize("who", EVERYBODY)
@pytest.mark.parametrize("method, name, body, answers", [
    ("patch", "edit_comment", '{"text": "better"}', api(UNKNOWN, OK, UNKNOWN, UNKNOWN, UNKNOWN)),  # the member's
    ("delete", "delete_comment", "", api(UNKNOWN, EMPTY, UNKNOWN, UNKNOWN, UNKNOWN)),
    ("patch", "change", '{"pinned": true}', of_run(api, OK, Role.EDITOR)),
    ("put", "give", '{"team": null}', of_run(api, OK, Role.OWNER)),
    ("delete", "delete", "", of_run(api, 409, Role.OWNER)),  # it has not ended
    ("delete", "take_back", "", of_run(api, EMPTY, Role.EDITOR)),
])
def test_other_methods_of_the_api(people, method, name, body, answers, who):
    answer = getattr(people.client(who), method)(address(name, people), body, content_type="application/json")
    assert answer.status_code == answers[EVERYBODY.index(who)]


@pytest.mark.parametrize("name", sorted({*POST} - OPEN_POSTS))
def test_a_post_from_another_site_changes_nothing(people, name):
    client = people.client("owner", enforce_csrf_checks=True)
    assert client.post(address(name, people)).status_code == 403


def test_an_outsider_cannot_tell_a_run_from_none(people):
    client = people.client("outsider")
    theirs, none = client.get(f"/runs/{people.run.pk}/"), client.get("/runs/nosuchrun1/")
    assert theirs.status_code == none.status_code == 404
    assert without_csrf(theirs) == without_csrf(none)


def without_csrf(response):
    return re.sub(rb'name="csrfmiddlewaretoken" value="[^"]*"', b"", response.content)


def test_gather_makes_everybody(db):
    people = gather(PRESETS["ddp-digits"].spec)
    assert [who for who in EVERYBODY if people.user(who)] == ["owner", "member", "editor", "viewer", "outsider"]
