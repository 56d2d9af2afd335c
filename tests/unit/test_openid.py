"""Logging in with a company's account, against a provider on a real socket; and what is refused."""

import time
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from dashboard import conf
from dashboard.accounts.models import Identity
from tests.openid_provider import CLIENT_ID, CLIENT_SECRET, running_provider


@pytest.fixture
def provider(people, settings):
    """It is the one that the server knows."""
    cache.clear()
    with running_provider() as running:
        settings.CONF = replace(settings.CONF, oidc_issuer=running.url, oidc_client_id=CLIENT_ID,
                                oidc_client_secret=CLIENT_SECRET, oidc_name="Acme")
        settings.AUTHENTICATION_BACKENDS = [*settings.AUTHENTICATION_BACKENDS, "dashboard.accounts.openid.Backend"]
        yield running


def there_and_back(client, after=""):
    """To the provider and back with what it gave: the address that it sent the browser to."""
    asked = client.get(f"/openid/start/{after}")
    sent_back = requests.get(asked["Location"], allow_redirects=False, timeout=5).headers["Location"]
    return sent_back.removeprefix("http://testserver")


def name_of(client):
    return client.get("/api/v1/me").json().get("name")


def test_somebody_new_gets_an_account_and_has_it_the_next_time(provider):
    client = Client()
    assert "Log in with Acme" in client.get("/login/").content.decode()
    assert client.get(there_and_back(client))["Location"] == "/"
    assert name_of(client) == "ada"
    user = User.objects.get(username="ada")
    assert not user.has_usable_password() and not user.is_superuser
    provider.person |= {"email": "ada@elsewhere.example", "preferred_username": "countess"}
    again = Client()
    again.get(there_and_back(again))
    assert name_of(again) == "ada" and Identity.objects.count() == 1


def test_what_is_asked_for_has_state_nonce_and_proof_key(provider):
    asked = parse_qs(urlsplit(Client().get("/openid/start/")["Location"]).query)
    assert asked["code_challenge_method"] == ["S256"] and asked["response_type"] == ["code"]
    assert all(len(asked[name][0]) >= 32 for name in ("state", "nonce", "code_challenge"))


def test_the_way_leads_back_to_where_it_began_and_to_no_other_site(provider):
    client = Client()
    assert client.get(there_and_back(client, "?next=/launch/"))["Location"] == "/launch/"
    client = Client()
    assert client.get(there_and_back(client, "?next=https://evil.example/"))["Location"] == "/"


def test_an_account_that_is_there_is_never_taken_over_by_its_name(provider):
    provider.person["preferred_username"] = "Member"
    client = Client()
    client.get(there_and_back(client))
    assert name_of(client) == "Member2"


@pytest.mark.parametrize("wrong", [
    {"iss": "https://evil.example"}, {"aud": "another client"}, {"nonce": "another login's"}, {"exp": int(time.time()) - 60},
    {"sub": "43"}, {"sub": ""},
])
def test_a_token_that_says_something_else_lets_nobody_in(provider, wrong):
    provider.token = wrong
    refused(Client())


def refused(client):
    answer = client.get(there_and_back(client), follow=True)
    assert answer.redirect_chain[-1] == ("/login/", 302) and "did not let you in" in answer.content.decode()
    assert not User.objects.filter(username="ada").exists()
    return answer


def test_a_token_signed_by_somebody_else_lets_nobody_in(provider):
    provider.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    refused(Client())


def test_what_came_back_opens_no_other_browser_and_nothing_twice(provider):
    client, thief = Client(), Client()
    back = there_and_back(client)
    there_and_back(thief)
    assert "began in another browser" in thief.get(back, follow=True).content.decode()
    assert client.get(back)["Location"] == "/"
    client.post("/logout/")
    assert client.get(back)["Location"] == "/login/"


def test_the_session_of_before_is_not_the_one_after(provider, settings):
    client = Client()
    back = there_and_back(client)
    before = client.cookies[settings.SESSION_COOKIE_NAME].value
    client.get(back)
    assert client.cookies[settings.SESSION_COOKIE_NAME].value != before


@pytest.mark.parametrize("person, is_let_in", [
    ({}, True), ({"email_verified": False}, False), ({"email": "ada@acme.example.evil"}, False),
    ({"email": "ADA@ACME.example"}, True),
])
def test_only_verified_addresses_of_its_domains_come_in(provider, settings, person, is_let_in):
    settings.CONF = replace(settings.CONF, oidc_domains=["acme.example"])
    provider.person |= person
    client = Client()
    client.get(there_and_back(client))
    assert (name_of(client) == "ada") == is_let_in


def test_nobody_comes_in_so_before_the_server_has_an_owner(provider):
    User.objects.all().delete()
    refused(Client())


def test_an_account_that_is_switched_off_stays_so(provider):
    client = Client()
    client.get(there_and_back(client))
    User.objects.filter(username="ada").update(is_active=False)
    again = Client()
    again.get(there_and_back(again))
    assert name_of(again) is None


def test_a_provider_that_is_away_is_said(provider, settings):
    settings.CONF = replace(settings.CONF, oidc_issuer="http://127.0.0.1:9")
    assert "cannot be reached" in Client().get("/openid/start/", follow=True).content.decode()


def test_passwords_work_beside_it(provider):
    from tests.people import PASSWORD

    assert Client().post("/login/", {"username": "member", "password": PASSWORD}).status_code == 302


def test_it_is_off_unless_it_is_set_and_half_of_it_is_refused(monkeypatch):
    assert conf.load().oidc_issuer == ""
    monkeypatch.setenv("LOCKSTEP_OIDC_ISSUER", "https://id.example.org/")
    with pytest.raises(conf.ConfigError, match="LOCKSTEP_OIDC_CLIENT_ID and LOCKSTEP_OIDC_CLIENT_SECRET"):
        conf.load()
    monkeypatch.setenv("LOCKSTEP_OIDC_CLIENT_ID", "x")
    monkeypatch.setenv("LOCKSTEP_OIDC_CLIENT_SECRET", "y")
    assert conf.load().oidc_issuer == "https://id.example.org"
    monkeypatch.setenv("LOCKSTEP_OIDC_ISSUER", "http://id.example.org")
    with pytest.raises(conf.ConfigError, match="is no address such as"):
        conf.load()
