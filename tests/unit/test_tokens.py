"""API tokens: made and taken back on the account's page, kept as digests, within their scopes, slowed when wrong."""

import json
import re
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from dashboard.accounts import throttle, tokens
from dashboard.accounts.models import ApiToken, FailedLogin
from dashboard.api import auth
from dashboard.runs.models import Run, State

WRONG = "lockstep_" + "x" * 43


@pytest.fixture(autouse=True)
def fresh_rates():
    cache.clear()


@pytest.fixture
def program(people):
    """program("read", "launch"): a client without cookies that sends a token of the member's with those scopes."""

    def made(*scopes, who="member"):
        _, text = tokens.make(people.user(who), "test", scopes)
        return Client(headers={"Authorization": f"Bearer {text}"})

    return made


def test_a_token_is_made_shown_once_and_kept_as_a_digest(people):
    client = people.client("member")
    answer = client.post("/account/", {"name": "laptop", "scopes": ["read", "launch"]})
    assert answer.status_code == 201
    text = re.search(r'id="new-token"[^>]*value="([^"]+)"', answer.content.decode())[1]
    kept = ApiToken.objects.get()
    assert (kept.user, kept.name, kept.scopes) == (people.user("member"), "laptop", ["read", "launch"])
    assert text not in json.dumps(list(ApiToken.objects.values()), default=str)
    assert text not in client.get("/account/").content.decode()
    assert len(text.removeprefix("lockstep_")) * 6 >= 128
    assert Client(headers={"Authorization": f"Bearer {text}"}).get("/api/v1/me").json()["name"] == "member"


@pytest.mark.parametrize("given, words", [
    ({"name": "", "scopes": ["read"]}, "A name would do"),
    ({"name": "x"}, "tick at least one"),
    ({"name": "x", "scopes": ["root"]}, "root is not one of the available choices"),
])
def test_a_token_that_makes_no_sense_is_refused(people, given, words):
    answer = people.client("member").post("/account/", given)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not ApiToken.objects.exists()


def test_a_token_that_was_taken_back_opens_nothing(people, program):
    client = program("read")
    assert client.get("/api/v1/runs").status_code == 200
    token = ApiToken.objects.get()
    assert people.client("outsider").post(f"/account/tokens/{token.pk}/take-back/").status_code == 404
    assert people.client("member").post(f"/account/tokens/{token.pk}/take-back/").status_code == 302
    assert client.get("/api/v1/runs").status_code == 401


def test_a_token_of_a_user_who_is_switched_off_opens_nothing(people, program):
    client, user = program("read"), people.user("member")
    user.is_active = False
    user.save()
    assert client.get("/api/v1/runs").status_code == 401


CALLS = [
    ("read", "get", "runs", None, 200), ("read", "get", "runs/{run}", None, 200), ("read", "get", "runs/{run}/steps", None, 200),
    ("read", "get", "presets", None, 200), ("read", "get", "runs/{run}/links", None, 200),
    ("launch", "post", "runs", {"steps": 1}, 201), ("launch", "post", "runs/{run}/again", {"schedule": "gpipe"}, 201),
    ("manage", "post", "runs/{run}/stop", None, 200), ("manage", "patch", "runs/{run}", {"pinned": True}, 200),
    ("manage", "post", "runs/{run}/links", None, 201), ("manage", "delete", "runs/{run}", None, 409),
]


@pytest.mark.parametrize("scope", tokens.SCOPES)
@pytest.mark.parametrize("needed, method, path, body, status", CALLS, ids=lambda value: str(value))
def test_a_token_does_what_its_scope_says_and_no_more(people, program, scope, needed, method, path, body, status):
    answer = getattr(program(scope), method)(
        f"/api/v1/{path.format(run=people.run.pk)}", json.dumps(body), content_type="application/json"
    ) if method != "get" else program(scope).get(f"/api/v1/{path.format(run=people.run.pk)}")
    if scope == needed:
        assert answer.status_code == status, answer.content
    else:
        assert (answer.status_code, answer["Content-Type"]) == (403, "application/problem+json")
        assert f"scope {needed}" in answer.json()["title"]


def test_a_token_sees_what_its_user_sees(people, program):
    assert program("read", who="outsider").get(f"/api/v1/runs/{people.run.pk}").status_code == 404
    assert program("read", who="owner").get(f"/api/v1/runs/{people.run.pk}").status_code == 200


def test_a_wrong_token_is_refused_whatever_the_cookies_say(people):
    client = people.client("member")
    assert client.get("/api/v1/runs", headers={"Authorization": f"Bearer {WRONG}"}).status_code == 401


def test_its_last_use_is_noted_at_most_once_a_minute(people, program, django_assert_num_queries):
    client = program("read")
    client.get("/api/v1/me")
    token = ApiToken.objects.get()
    assert timezone.now() - token.last_used_at < timedelta(seconds=10)
    with django_assert_num_queries(3):  # failed attempts, the token, teams
        client.get("/api/v1/me")
    ApiToken.objects.update(last_used_at=timezone.now() - timedelta(hours=1))
    client.get("/api/v1/me")
    assert timezone.now() - ApiToken.objects.get().last_used_at < timedelta(seconds=10)


def test_wrong_tokens_are_slowed_and_logins_are_not(people, program):
    good = program("read")
    statuses = []
    for number in range(throttle.FREE_MISSES_OF_ADDRESS + 2):
        wrong = "lockstep_" + str(number).zfill(43)
        statuses.append(Client(headers={"Authorization": f"Bearer {wrong}"}).get("/api/v1/runs"))
    assert [answer.status_code for answer in statuses] == [401] * (throttle.FREE_MISSES_OF_ADDRESS + 1) + [429]
    assert int(statuses[-1]["Retry-After"]) >= 1
    assert good.get("/api/v1/runs").status_code == 429  # a guess is not looked at, be it right
    assert throttle.wait_seconds("member", "127.0.0.1") == 0
    FailedLogin.objects.update(at=timezone.now() - timedelta(hours=1))
    assert good.get("/api/v1/runs").status_code == 200


def test_more_requests_a_minute_than_allowed_are_told_to_wait(people, program, monkeypatch):
    monkeypatch.setattr(auth, "REQUESTS_A_MINUTE", 3)
    monkeypatch.setattr(auth.time, "time", lambda: 1_000_000.0)
    client = program("read")
    answers = [client.get("/api/v1/me") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[-1]["Retry-After"] == "20"  # until the next minute of the clock
    assert people.client("outsider").get("/api/v1/me").status_code == 200


def test_a_program_needs_no_csrf_token_and_a_session_does(people, program):
    Run.objects.update(state=State.RUNNING)
    stop = f"/api/v1/runs/{people.run.pk}/stop"
    answer = people.client("member", enforce_csrf_checks=True).post(stop)
    assert (answer.status_code, answer["Content-Type"]) == (403, "application/problem+json")
    _, text = tokens.make(people.user("member"), "test", ["manage"])
    assert Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {text}"}).post(stop).status_code == 200
