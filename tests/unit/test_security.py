"""What sessions and logins hold against those who mean ill."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone

from dashboard.accounts import teams, throttle
from dashboard.accounts.models import FailedLogin
from dashboard.roles import Role
from tests.people import PASSWORD

LOGIN = {"username": "member", "password": PASSWORD}


def test_a_session_that_was_there_before_the_login_is_not_the_one_after_it(people):
    """Session fixation: who knows the cookie of before has nothing."""
    client = Client()
    session = client.session
    session["planted"] = True
    session.save()
    client.cookies[settings.SESSION_COOKIE_NAME] = session.session_key
    client.post("/login/", LOGIN)
    after = client.cookies[settings.SESSION_COOKIE_NAME].value
    assert after != session.session_key
    thief = Client()
    thief.cookies[settings.SESSION_COOKIE_NAME] = session.session_key
    assert thief.get("/")["Location"].startswith("/login/")
    assert client.get("/").status_code == 200


def test_nobody_takes_over_the_session_of_somebody_else_by_an_invitation(people):
    _, token = teams.invite(people.team, people.user("member"), Role.VIEWER, 7, 1)
    client = Client()
    planted = client.session
    planted.save()
    client.cookies[settings.SESSION_COOKIE_NAME] = planted.session_key
    client.post(f"/invited/{token}/", {"username": "ada", "password1": PASSWORD, "password2": PASSWORD})
    assert client.cookies[settings.SESSION_COOKIE_NAME].value != planted.session_key


def test_after_a_logout_the_cookie_opens_nothing(people):
    client = people.client("member")
    key = client.cookies[settings.SESSION_COOKIE_NAME].value
    client.post("/logout/")
    assert not Session.objects.filter(session_key=key).exists()
    thief = Client()
    thief.cookies[settings.SESSION_COOKIE_NAME] = key
    assert thief.get("/")["Location"].startswith("/login/")


def test_guessing_passwords_is_slowed_and_the_right_one_is_not_looked_at_meanwhile(people):
    client = Client()
    wrong = [client.post("/login/", LOGIN | {"password": f"guess {number}"}).status_code for number in range(8)]
    assert wrong[: throttle.FREE_MISSES + 1] == [422] * (throttle.FREE_MISSES + 1)
    assert set(wrong[throttle.FREE_MISSES + 1 :]) == {429}
    assert client.post("/login/", LOGIN).status_code == 429
    FailedLogin.objects.update(at=timezone.now() - throttle.REMEMBERED)
    assert client.post("/login/", LOGIN).status_code == 302


@pytest.mark.parametrize("elsewhere", [
    "https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "https:evil.example",
    "\t//evil.example", "http://testserver@evil.example/", "http://testserver.evil.example/",
])
def test_a_login_leads_to_no_other_site(people, elsewhere):
    answer = Client().post(f"/login/?next={elsewhere}", LOGIN | {"next": elsewhere})
    assert answer["Location"] == "/"


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example/", "/\\evil.example"])
def test_what_a_list_sends_back_leads_to_no_other_site(people, elsewhere):
    for path, body in (("/bulk/", {"do": "archive", "run": people.run.pk}), ("/views/", {"name": "x"})):
        location = people.client("member").post(path, body | {"address": elsewhere, "next": elsewhere})["Location"]
        assert location == "/" or location.startswith("/?")


def test_an_account_that_is_switched_off_opens_nothing(people):
    client, viewer = people.client("viewer"), people.user("viewer")
    viewer.is_active = False
    viewer.save()
    assert client.get(f"/runs/{people.run.pk}/")["Location"].startswith("/login/")


AS_IN_PRODUCTION = {"LOCKSTEP_ORIGINS": "https://lockstep.example.org", "LOCKSTEP_HOSTS": "lockstep.example.org"}


def in_production(code_or_command, tmp_path):
    """What a fresh interpreter with an operator's settings says; it fails when that fails."""
    place = {"LOCKSTEP_HOME": str(tmp_path), "PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "dashboard.settings"}
    done = subprocess.run([sys.executable, *code_or_command], cwd=Path(__file__).parents[2], env=place | AS_IN_PRODUCTION,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_djangos_own_look_at_a_server_behind_https_finds_nothing(tmp_path):
    assert "no issues" in in_production(["manage.py", "check", "--deploy", "--fail-level", "INFO"], tmp_path)


def test_behind_https_http_leads_there_and_the_health_is_told_all_the_same(tmp_path):
    code = """
import json, django
django.setup()
from django.test import Client
client = Client(headers={"host": "lockstep.example.org"})
plain, safe = client.get("/login/"), client.get("/client/lockstep.py", headers={"x-forwarded-proto": "https"})
print(json.dumps([plain.status_code, plain["Location"], safe.status_code, safe["Strict-Transport-Security"]]))
"""
    assert json.loads(in_production(["-c", code], tmp_path)) == [
        301, "https://lockstep.example.org/login/", 200, "max-age=31536000; includeSubDomains"]


@pytest.mark.parametrize("method, path, body", [
    ("patch", "runs/{run}", {"pinned": True}), ("put", "runs/{run}/team", {"team": None}), ("delete", "runs/{run}", None),
    ("post", "bulk", {"do": "archive", "runs": ["{run}"]}), ("post", "teams", {"name": "x"}),
])
def test_a_session_alone_changes_nothing_by_the_api_without_csrf(people, method, path, body):
    client = people.client("member", enforce_csrf_checks=True)
    text = json.dumps(body).replace("{run}", people.run.pk)
    answer = getattr(client, method)(f"/api/v1/{path.format(run=people.run.pk)}", text, content_type="application/json")
    assert answer.status_code == 403
    people.run.refresh_from_db()
    assert people.run.pinned_at is None and people.run.archived_at is None and people.run.team_id == people.team.pk
