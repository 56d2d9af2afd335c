"""Every address, for every person."""

import re
import secrets

import pytest
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from dashboard.accounts import tokens
from dashboard.runs import services
from dashboard.runs.models import SavedView
from tests.people import EVERYBODY, gather
from trainer.presets import PRESETS

OK, FOUND, UNKNOWN, FORBIDDEN_METHOD, REFUSED, LOGIN = 200, 302, 404, 405, 401, "login"

# What a GET answers: owner, member, outsider, nobody, link holder.
GET = {
    "login": (FOUND, FOUND, FOUND, OK, OK),
    "logout": (FORBIDDEN_METHOD, FORBIDDEN_METHOD, FORBIDDEN_METHOD, LOGIN, LOGIN),
    "welcome": (UNKNOWN,) * 5,
    "account": (OK, OK, OK, LOGIN, LOGIN),
    "token-take-back": (FORBIDDEN_METHOD, FORBIDDEN_METHOD, FORBIDDEN_METHOD, LOGIN, LOGIN),
    "runs": (OK, OK, OK, LOGIN, LOGIN),
    "runs-bulk": (FORBIDDEN_METHOD, FORBIDDEN_METHOD, FORBIDDEN_METHOD, LOGIN, LOGIN),
    "runs-save-view": (FORBIDDEN_METHOD, FORBIDDEN_METHOD, FORBIDDEN_METHOD, LOGIN, LOGIN),
    "runs-forget-view": (FORBIDDEN_METHOD, FORBIDDEN_METHOD, FORBIDDEN_METHOD, LOGIN, LOGIN),
    "runs-compare": (OK, OK, UNKNOWN, LOGIN, LOGIN),
    "runs-compare-loss": (OK, OK, UNKNOWN, LOGIN, LOGIN),
    "runs-rows": (OK, OK, OK, LOGIN, LOGIN),
    "launch": (OK, OK, OK, LOGIN, LOGIN),
    "learn": (OK,) * 5,
    "idea": (OK,) * 5,
    "idea-start": (FORBIDDEN_METHOD, FORBIDDEN_METHOD, FORBIDDEN_METHOD, LOGIN, LOGIN),
    "launch-check": (FORBIDDEN_METHOD, FORBIDDEN_METHOD, FORBIDDEN_METHOD, LOGIN, LOGIN),
    "run": (OK, OK, UNKNOWN, LOGIN, LOGIN),
    "run-stop": (FORBIDDEN_METHOD, FORBIDDEN_METHOD, FORBIDDEN_METHOD, LOGIN, LOGIN),
    "run-change": (FORBIDDEN_METHOD, FORBIDDEN_METHOD, FORBIDDEN_METHOD, LOGIN, LOGIN),
    "run-again": (FORBIDDEN_METHOD, FORBIDDEN_METHOD, FORBIDDEN_METHOD, LOGIN, LOGIN),
    "run-exports": (OK, OK, UNKNOWN, LOGIN, LOGIN),
    "run-export": (FORBIDDEN_METHOD, FORBIDDEN_METHOD, FORBIDDEN_METHOD, LOGIN, LOGIN),
    "run-export-file": (UNKNOWN, UNKNOWN, UNKNOWN, LOGIN, LOGIN),  # none was made
    "run-share": (FORBIDDEN_METHOD, FORBIDDEN_METHOD, FORBIDDEN_METHOD, LOGIN, LOGIN),
    "run-take-back": (FORBIDDEN_METHOD, FORBIDDEN_METHOD, FORBIDDEN_METHOD, LOGIN, LOGIN),
    "run-log": (OK, OK, UNKNOWN, LOGIN, LOGIN),
    "run-chart": (OK, OK, UNKNOWN, LOGIN, LOGIN),
    "run-ideal": (OK, OK, UNKNOWN, LOGIN, LOGIN),
    "shared-run": (OK,) * 5,
    "shared-run-log": (OK,) * 5,
    "shared-chart": (OK,) * 5,
    "run-panel": (OK, OK, UNKNOWN, LOGIN, LOGIN),
    "shared-panel": (OK,) * 5,
    "client": (OK,) * 5,
    "shared-run-ideal": (OK,) * 5,
    "run-window": (OK, OK, UNKNOWN, LOGIN, LOGIN),
    "shared-window": (OK,) * 5,
    "healthz": (503,) * 5,  # there is no Redis in unit tests
    "openapi-json": (OK, OK, OK, LOGIN, LOGIN),
    "openapi-view": (OK, OK, OK, LOGIN, LOGIN),
    "api-root": (UNKNOWN,) * 5,
    "presets": (OK, OK, OK, REFUSED, REFUSED),
    "list_runs": (OK, OK, OK, REFUSED, REFUSED),
    "me": (OK, OK, OK, REFUSED, REFUSED),
    "workers": (503, 503, 503, REFUSED, REFUSED),
    "show": (OK, OK, UNKNOWN, REFUSED, REFUSED),
    "steps": (OK, OK, UNKNOWN, REFUSED, REFUSED),
    "log": (OK, OK, UNKNOWN, REFUSED, REFUSED),
    "picture": (OK, OK, UNKNOWN, REFUSED, REFUSED),
    "links": (OK, OK, UNKNOWN, REFUSED, REFUSED),
    "compare": (OK, OK, UNKNOWN, REFUSED, REFUSED),
    "exports": (OK, OK, UNKNOWN, REFUSED, REFUSED),
    "make": (FORBIDDEN_METHOD,) * 5,
    "export_file": (UNKNOWN, UNKNOWN, UNKNOWN, REFUSED, REFUSED),
    "stop": (FORBIDDEN_METHOD,) * 5,
    "again": (FORBIDDEN_METHOD,) * 5,
    "restore": (FORBIDDEN_METHOD,) * 5,
    "take_back": (FORBIDDEN_METHOD,) * 5,
    "change": (OK, OK, UNKNOWN, REFUSED, REFUSED),  # the address of "show"
    "delete": (OK, OK, UNKNOWN, REFUSED, REFUSED),
    "share": (OK, OK, UNKNOWN, REFUSED, REFUSED),  # the address of "links"
}
# What a POST answers, where there is one.
POST = {
    "logout": (FOUND, FOUND, FOUND, LOGIN, LOGIN),
    "welcome": (UNKNOWN,) * 5,
    "launch": (FOUND, FOUND, FOUND, LOGIN, LOGIN),
    "launch-check": (OK, OK, OK, LOGIN, LOGIN),
    "idea-start": (FOUND, FOUND, FOUND, LOGIN, LOGIN),
    "run-stop": (FOUND, FOUND, UNKNOWN, LOGIN, LOGIN),
    "account": (422, 422, 422, LOGIN, LOGIN),
    "token-take-back": (UNKNOWN, FOUND, UNKNOWN, LOGIN, LOGIN),  # the member's
    "runs-bulk": (FOUND, FOUND, FOUND, LOGIN, LOGIN),  # in silence: which of the runs are there is secret
    "runs-save-view": (FOUND, FOUND, FOUND, LOGIN, LOGIN),
    "runs-forget-view": (UNKNOWN, FOUND, UNKNOWN, LOGIN, LOGIN),  # the member's
    "run-change": (FOUND, FOUND, UNKNOWN, LOGIN, LOGIN),
    "run-again": (FOUND, FOUND, UNKNOWN, LOGIN, LOGIN),
    "run-export": (FOUND, FOUND, UNKNOWN, LOGIN, LOGIN),
    "make": (OK, OK, UNKNOWN, REFUSED, REFUSED),
    "again": (201, 201, UNKNOWN, REFUSED, REFUSED),
    "restore": (UNKNOWN, UNKNOWN, UNKNOWN, REFUSED, REFUSED),  # it was not deleted
    "run-share": (FOUND, FOUND, UNKNOWN, LOGIN, LOGIN),
    "run-take-back": (FOUND, FOUND, UNKNOWN, LOGIN, LOGIN),
    "stop": (OK, OK, UNKNOWN, REFUSED, REFUSED),
    "shared-run": (FORBIDDEN_METHOD,) * 5,
    "shared-run-log": (FORBIDDEN_METHOD,) * 5,
}
API = ("openapi-json", "openapi-view", "api-root", "presets", "list_runs", "show", "stop", "me", "workers", "steps", "log",
       "links", "compare", "again", "restore", "take_back", "change", "delete", "share", "exports", "make", "export_file",
       "picture")
NAMESPACES = dict.fromkeys(API, "api:")
BODIES = {"runs-bulk": {"do": "archive"}, "again": {"schedule": "gpipe"}}


def address(name, people):
    values = {
        "run_id": people.run.pk, "token": people.token, "link_id": people.link.pk, "rank": 0,
        "key": "bubble" if name.startswith("idea") else "steps-csv",
        "name": "pipeline" if name.endswith("panel") else "loss",
        "token_id": tokens.make(people.user("member"), "ci", ["read"])[0].pk,
        "view_id": SavedView.objects.create(user=people.user("member"), name=secrets.token_hex(4), address="q=state:failed").pk,
    }
    pattern = patterns()[name]
    wanted = {key: values[key] for key in pattern.pattern.converters} if name != "welcome" else {"token": "x" * 64}
    found = reverse(NAMESPACES.get(name, "") + name, kwargs=wanted)
    if "compare" in name:
        other = services.launch(PRESETS["ddp-digits"].spec, people.user("member"))
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


@pytest.mark.parametrize("who", EVERYBODY)
@pytest.mark.parametrize("name", GET)
def test_get(people, name, who):
    assert told(people.client(who).get(address(name, people))) == GET[name][EVERYBODY.index(who)]


@pytest.mark.parametrize("who", EVERYBODY)
@pytest.mark.parametrize("name", POST)
def test_post(people, name, who):
    body = BODIES.get(name, {})
    as_json = {"content_type": "application/json"} if name in API else {}
    assert told(people.client(who).post(address(name, people), body, **as_json)) == POST[name][EVERYBODY.index(who)]


@pytest.mark.parametrize("who", EVERYBODY)
@pytest.mark.parametrize("method, name, body, answers", [
    ("patch", "change", '{"pinned": true}', (OK, OK, UNKNOWN, REFUSED, REFUSED)),
    ("delete", "delete", "", (409, 409, UNKNOWN, REFUSED, REFUSED)),  # it has not ended
    ("delete", "take_back", "", (204, 204, UNKNOWN, REFUSED, REFUSED)),
])
def test_other_methods_of_the_api(people, method, name, body, answers, who):
    answer = getattr(people.client(who), method)(address(name, people), body, content_type="application/json")
    assert answer.status_code == answers[EVERYBODY.index(who)]


@pytest.mark.parametrize("name", sorted({*POST} - {"welcome", "shared-run", "shared-run-log"}))
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


@pytest.mark.parametrize("token", ["x", "x" * 32, "x" * 300, "..", "%00", "a'b", "é" * 30])
def test_a_wrong_or_malformed_token_opens_nothing(people, token):
    client = people.client("link_holder")
    assert client.get(f"/s/{token}/").status_code == 404
    assert client.get(f"/s/{token}/logs/0/").status_code == 404


def test_a_link_that_was_taken_back_opens_nothing(people):
    client = people.client("link_holder")
    assert client.get(f"/s/{people.token}/").status_code == 200
    services.take_back(people.link)
    assert client.get(f"/s/{people.token}/").status_code == 404
    assert client.get(f"/s/{people.token}/logs/0/").status_code == 404


def test_a_link_opens_its_run_alone(people):
    other = services.launch(PRESETS["ddp-digits"].spec, people.user("member"))
    client = people.client("link_holder")
    assert told(client.get(f"/runs/{other.pk}/")) == LOGIN
    assert people.run.name in client.get(f"/s/{people.token}/").content.decode()


def test_gather_makes_everybody(db):
    people = gather(PRESETS["ddp-digits"].spec)
    assert [who for who in EVERYBODY if people.user(who)] == ["owner", "member", "outsider"]
