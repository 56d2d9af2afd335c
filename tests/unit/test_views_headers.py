"""What every page promises the browser."""

import re

import pytest
from django.conf import settings

from dashboard.accounts import first_visit
from tests.people import PASSWORD

PAGES = ("/", "/?page=2", "/launch/", "/launch/?preset=nope", "/runs/{run}/", "/nowhere/", "/api/v1/docs")
OPEN_PAGES = ("/login/", "/s/{token}/", "/s/wrong/", "/nowhere/")


@pytest.fixture
def get(people):
    def page(address, who="member"):
        return people.client(who).get(address.format(run=people.run.pk, token=people.token))

    return page


@pytest.fixture(params=[(page, "member") for page in PAGES] + [(page, "nobody") for page in OPEN_PAGES], ids=" by ".join)
def response(request, get):
    return get(*request.param)


def directives(response):
    return dict(part.strip().split(" ", 1) for part in response["Content-Security-Policy"].split(";"))


def test_scripts_come_from_here_alone(response):
    policy = directives(response)
    assert policy["default-src"] == "'none'"
    assert re.fullmatch(r"'self'( 'nonce-[^']+')?", policy["script-src"])
    assert policy["frame-ancestors"] == "'none'"
    assert policy["form-action"] == "'self'"
    assert "unsafe-eval" not in response["Content-Security-Policy"]


def test_nothing_in_a_page_needs_more_than_that(response):
    html = response.content.decode()
    for script in re.findall(r"<script\b[^>]*>", html):
        assert 'src="/static/' in script or 'type="application/json"' in script, script
    assert not re.search(r"\son[a-z]+\s*=\s*[\"']", html)
    assert "javascript:" not in html
    assert not re.search(r'(?:src|href)="(?:https?:)?//', html)


def test_a_page_is_not_framed_sniffed_or_told_to_others(response):
    assert response["X-Frame-Options"] == "DENY"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"


def test_a_page_has_a_language_a_title_one_heading_and_a_way_past_the_bar(response):
    html = response.content.decode()
    assert '<html lang="en">' in html
    assert re.search(r"<title>[^<]+</title>", html)
    assert len(re.findall(r"<h1\b", html)) == 1
    assert '<a class="skip" href="#content">' in html
    assert html.count('id="content"') == html.count("<main ") == 1


def test_ids_are_unique_and_labels_point_at_fields(response):
    html = response.content.decode()
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'<label[^>]*\sfor="([^"]+)"', html)) <= set(ids)
    for names in re.findall(r'aria-describedby="([^"]+)"', html):
        assert set(names.split()) <= set(ids)


def test_static_files_that_a_page_names_are_there(response, client):
    for path in set(re.findall(r'(?:src|href)="(/static/[^"]+)"', response.content.decode())):
        assert client.get(path).status_code == 200, path


def test_cookies_are_kept_from_scripts_and_other_sites(people):
    answer = people.client("nobody").post("/login/", {"username": "member", "password": PASSWORD})
    session = answer.cookies[settings.SESSION_COOKIE_NAME]
    assert session["httponly"]
    assert session["samesite"] == "Lax"


def test_the_first_visit_is_not_kept_by_caches(client, db, home):
    answer = client.get(f"/welcome/{first_visit.token()}/")
    assert "no-store" in answer["Cache-Control"]


def test_a_broken_page_says_so_in_the_look(people, monkeypatch):
    def broken(*args):
        raise RuntimeError("the roof is leaking")

    monkeypatch.setattr("dashboard.runs.views.listing.page_of_runs", broken)
    client = people.client("member")
    client.raise_request_exception = False
    answer = client.get("/")
    assert answer.status_code == 500
    assert "Lockstep stumbled" in answer.content.decode()
    assert "leaking" not in answer.content.decode()


def test_a_form_that_expired_says_so_in_the_look(people):
    answer = people.client("member", enforce_csrf_checks=True).post("/launch/")
    assert answer.status_code == 403
    assert "This form has expired" in answer.content.decode()


def test_another_host_name_is_refused(client, db):
    assert client.get("/login/", headers={"host": "evil.example"}).status_code == 400
