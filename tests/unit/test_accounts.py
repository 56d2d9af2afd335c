import re
import stat
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.utils import timezone

from dashboard.accounts import first_visit, throttle
from dashboard.accounts.models import FailedLogin
from dashboard.runs import services
from dashboard.runs.models import Run
from tests.people import PASSWORD
from trainer.spec import JobSpec

GOOD = {"username": "ada", "password1": PASSWORD, "password2": PASSWORD}


@pytest.fixture
def door(db, home):
    """The address of the first visit."""
    return f"/welcome/{first_visit.token()}/"


def logged_in(client):
    return "_auth_user_id" in client.session


def test_the_token_is_made_once_and_only_its_owner_reads_it(db, home):
    token = first_visit.token()
    assert len(token) >= 40
    assert first_visit.token() == token
    assert stat.S_IMODE((home / "first-visit").stat().st_mode) == 0o600


def test_there_is_no_token_once_somebody_has_an_account(db, home):
    User.objects.create_user("ada")
    assert first_visit.token() is None
    assert not (home / "first-visit").exists()


def test_the_first_visitor_becomes_the_owner_and_is_logged_in(client, door, home):
    assert client.get(door).status_code == 200
    response = client.post(door, GOOD)
    assert (response.status_code, response["Location"]) == (302, "/")
    owner = User.objects.get()
    assert (owner.username, owner.is_superuser, owner.check_password(PASSWORD)) == ("ada", True, True)
    assert logged_in(client)
    assert not list(home.glob("first-visit*"))


def test_runs_from_before_any_account_become_the_owners(client, door):
    services.launch(JobSpec(), owner=None)
    client.post(door, GOOD)
    assert Run.objects.get().owner.username == "ada"


def test_the_first_visit_cannot_happen_twice(client, door):
    client.post(door, GOOD)
    stranger = Client()
    assert stranger.get(door).status_code == 404
    assert stranger.post(door, GOOD | {"username": "eve"}).status_code == 404
    assert User.objects.count() == 1


@pytest.mark.parametrize("token", ["x", "x" * 64, "é"])
def test_a_wrong_token_makes_no_account(client, door, token):
    assert client.post(f"/welcome/{token}/", GOOD).status_code == 404
    assert not User.objects.exists()


def test_no_token_was_made_no_door_is_open(client, db, home):
    assert client.get("/welcome/anything/").status_code == 404
    assert not (home / "first-visit").exists()


@pytest.mark.parametrize("change, complaint", [
    ({"password2": "another one of twenty"}, "match"),
    ({"password1": "short", "password2": "short"}, "too short"),
    ({"password1": "12345678901234", "password2": "12345678901234"}, "numeric"),
    ({"username": ""}, "required"),
    ({"username": "a b\n"}, "valid username"),
])
def test_an_account_that_does_not_fit_is_refused_and_the_door_stays_open(client, door, change, complaint):
    response = client.post(door, GOOD | change)
    assert response.status_code == 422
    assert complaint in response.content.decode()
    assert not User.objects.exists()
    assert client.post(door, GOOD).status_code == 302


def test_the_door_opens_again_when_making_the_account_breaks(client, door, monkeypatch):
    def broken(self, *args, **kwargs):
        raise ImproperlyConfigured("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(User, "save", broken)
        with pytest.raises(ImproperlyConfigured):
            client.post(door, GOOD)
    assert client.post(door, GOOD).status_code == 302


def test_of_two_visitors_at_once_one_gets_in(door, home):
    with first_visit.claimed() as first:
        with first_visit.claimed() as second:
            assert (first, second) == (True, False)


def test_login_says_where_the_link_is_while_nobody_has_an_account(client, db, home):
    assert "one-time link" in client.get("/login/").content.decode()
    User.objects.create_user("ada")
    assert "one-time link" not in client.get("/login/").content.decode()


def test_log_in_and_out(client, people):
    assert client.post("/login/", {"username": "member", "password": PASSWORD})["Location"] == "/"
    assert logged_in(client)
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/")["Location"] == "/login/"
    assert not logged_in(client)


def test_login_leads_to_where_one_wanted_to_go_and_nowhere_else(client, people):
    there = client.get(f"/runs/{people.run.pk}/")["Location"]
    assert client.post(there, {"username": "member", "password": PASSWORD, "next": f"/runs/{people.run.pk}/"})["Location"] == (
        f"/runs/{people.run.pk}/"
    )
    away = Client().post("/login/", {"username": "member", "password": PASSWORD, "next": "https://evil.example/"})
    assert away["Location"] == "/"


def guess(client, password="wrong", name="member", address="10.0.0.1"):
    return client.post("/login/", {"username": name, "password": password}, REMOTE_ADDR=address)


def test_guessing_gets_slower(client, people):
    for _ in range(throttle.FREE_MISSES + 1):
        assert guess(client).status_code == 422
    refused = guess(client, PASSWORD)
    assert refused.status_code == 429
    assert re.search(r"Try again in \d seconds?\.", refused.content.decode())
    assert not logged_in(client)


def test_attempts_during_the_wait_do_not_prolong_it(client, people):
    for _ in range(throttle.FREE_MISSES + 1):
        guess(client)
    kept = FailedLogin.objects.count()
    for _ in range(5):
        assert guess(client).status_code == 429
    assert FailedLogin.objects.count() == kept


def test_somebody_elses_guesses_do_not_lock_the_owner_out(client, people):
    for _ in range(throttle.FREE_MISSES + 3):
        guess(client, address="10.6.6.6")
    assert guess(client, PASSWORD, address="10.0.0.1").status_code == 302


def test_nobody_waits_longer_than_a_minute(people):
    now = timezone.now()
    FailedLogin.objects.bulk_create(FailedLogin(name="member", address="10.0.0.1", at=now) for _ in range(90))
    assert 1 <= throttle.wait_seconds("member", "10.0.0.1") <= throttle.LONGEST_WAIT_SECONDS
    FailedLogin.objects.update(at=now - timedelta(seconds=throttle.LONGEST_WAIT_SECONDS + 1))
    assert throttle.wait_seconds("member", "10.0.0.1") == 0


def test_trying_many_names_from_one_address_waits_too(people):
    for number in range(throttle.FREE_MISSES_OF_ADDRESS + 1):
        throttle.missed(f"name{number}", "10.0.0.1")
    assert throttle.wait_seconds("member", "10.0.0.1") > 0
    assert throttle.wait_seconds("member", "10.0.0.2") == 0


def test_the_right_password_clears_the_slate(client, people):
    for _ in range(throttle.FREE_MISSES):
        guess(client)
    assert guess(client, PASSWORD).status_code == 302
    assert not FailedLogin.objects.exists()


def test_spelling_a_name_differently_is_the_same_guess(people):
    for name in ("member", "Member", " MEMBER ", "mEmber", "membeR"):
        throttle.missed(name, "10.0.0.1")
    assert throttle.wait_seconds("member", "10.0.0.1") > 0


NEXT = {"old_password": PASSWORD, "new_password1": "another good one", "new_password2": "another good one"}


@pytest.fixture
def ada(db):
    return User.objects.create_user("ada", password=PASSWORD)


def test_a_changed_password_logs_other_browsers_out_and_this_one_not(client, ada):
    other = Client()
    for each in (client, other):
        each.force_login(ada)
    assert "Change the password" in client.get("/account/").content.decode()
    assert client.post("/account/password/", NEXT)["Location"] == "/account/"
    assert client.get("/account/").status_code == 200
    assert other.get("/account/").status_code == 302
    ada.refresh_from_db()
    assert ada.check_password("another good one")


@pytest.mark.parametrize(("field", "given", "words"), [
    ("old_password", "not the one", "This is not the password that you have now."),
    ("new_password2", "something else", "match"), ("new_password1", "short", "match"),
])
def test_a_password_that_will_not_do_stays_as_it_was(client, ada, field, given, words):
    client.force_login(ada)
    answer = client.post("/account/password/", NEXT | {field: given})
    assert answer.status_code == 422 and words in answer.content.decode()
    ada.refresh_from_db()
    assert ada.check_password(PASSWORD)


def test_who_logs_in_elsewhere_has_no_password_to_change(client, ada):
    ada.set_unusable_password()
    ada.save()
    client.force_login(ada)
    assert "Change the password" not in client.get("/account/").content.decode()
    assert client.get("/account/password/").status_code == 404
