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
from tests.people import EVERYBODY, gather
from trainer.presets import PRESETS

OK, MADE, EMPTY, FOUND, UNKNOWN, WRONG_METHOD, REFUSED, FORBIDDEN, LOGIN = 200, 201, 204, 302, 404, 405, 401, 403, "login"


def page(*accounts):
    """Answers of a page to owner, member, editor, viewer, outsider; strangers are sent to the login."""
    return (*accounts, LOGIN, LOGIN)


def api(*accounts):
    """The same for the API, which refuses strangers."""
    return (*accounts, REFUSED, REFUSED)


def anyone(answer):
    return (answer,) * len(EVERYBODY)


def of_run(kind, answer, needs=Role.VIEWER):
    """An address of the run: who has no part in it cannot tell it from none, who has too small a one is told so."""
    editor = answer if Role.EDITOR.allows(needs) else FORBIDDEN
    viewer = answer if Role.VIEWER.allows(needs) else FORBIDDEN
    return kind(answer, answer, editor, viewer, UNKNOWN)


def with_account(kind, answer):
    return kind(*(answer,) * 5)


POST_ONLY, API_POST_ONLY = with_account(page, WRONG_METHOD), anyone(WRONG_METHOD)
SEEN, API_SEEN = of_run(page, OK), of_run(api, OK)
LOGGED_IN, API_LOGGED_IN = with_account(page, OK), with_account(api, OK)

GET = {
    "login": (FOUND,) * 5 + (OK, OK),
    "logout": POST_ONLY,
    "welcome": anyone(UNKNOWN),
    "invited": anyone(OK),
    "learn": anyone(OK),
    "idea": anyone(OK),
    "idea-start": POST_ONLY,
    "client": anyone(OK),
    "account": LOGGED_IN,
    "token-take-back": POST_ONLY,
    "team": SEEN,
    "team-make": POST_ONLY,
    "team-invite": POST_ONLY,
    "invitation-take-back": POST_ONLY,
    "team-member": POST_ONLY,
    "webhooks": of_run(page, OK, Role.OWNER),
    "webhook-remove": POST_ONLY,
    "notices": LOGGED_IN,
    "notices-read": POST_ONLY,
    "runs": LOGGED_IN,
    "runs-bulk": POST_ONLY,
    "runs-save-view": POST_ONLY,
    "runs-forget-view": POST_ONLY,
    "runs-compare": SEEN,
    "runs-compare-loss": SEEN,
    "runs-rows": LOGGED_IN,
    "launch": LOGGED_IN,
    "launch-check": POST_ONLY,
    "run": SEEN,
    "run-stop": POST_ONLY,
    "run-change": POST_ONLY,
    "run-again": POST_ONLY,
    "run-exports": SEEN,
    "run-export": POST_ONLY,
    "run-export-file": with_account(page, UNKNOWN),  # none was made
    "run-give": POST_ONLY,
    "run-share": POST_ONLY,
    "run-take-back": POST_ONLY,
    "run-ideal": SEEN,
    "run-window": SEEN,
    "run-log": SEEN,
    "run-chart": SEEN,
    "run-panel": SEEN,
    "run-comments": SEEN,
    "shared-comments": anyone(UNKNOWN),  # this link is without them
    "shared-run": anyone(OK),
    "shared-run-log": anyone(OK),
    "shared-run-ideal": anyone(OK),
    "shared-window": anyone(OK),
    "shared-preview": anyone(OK),
    "embedded-run": anyone(OK),
    "shared-chart": anyone(OK),
    "shared-panel": anyone(OK),
    "healthz": anyone(503),  # there is no Redis in unit tests
    "openapi-json": LOGGED_IN,
    "openapi-view": LOGGED_IN,
    "api-root": anyone(UNKNOWN),
    "presets": API_LOGGED_IN,
    "list_runs": API_LOGGED_IN,
    "me": API_LOGGED_IN,
    "workers": with_account(api, 503),
    "show": API_SEEN,
    "steps": API_SEEN,
    "log": API_SEEN,
    "picture": API_SEEN,
    "links": of_run(api, OK, Role.EDITOR),
    "compare": API_SEEN,
    "exports": API_SEEN,
    "make": API_POST_ONLY,
    "export_file": with_account(api, UNKNOWN),
    "comments": API_SEEN,
    "comment": API_SEEN,  # the address of "comments"
    "edit_comment": API_POST_ONLY,
    "delete_comment": API_POST_ONLY,
    "stop": API_POST_ONLY,
    "again": API_POST_ONLY,
    "restore": API_POST_ONLY,
    "give": API_POST_ONLY,
    "take_back": API_POST_ONLY,
    "change": API_SEEN,  # the address of "show"
    "delete": API_SEEN,
    "share": of_run(api, OK, Role.EDITOR),  # the address of "links"
}
# What a POST answers, where there is one.
POST = {
    "logout": with_account(page, FOUND),
    "welcome": anyone(UNKNOWN),
    "invited": (FOUND,) * 5 + (422, 422),
    "launch": with_account(page, FOUND),
    "launch-check": LOGGED_IN,
    "idea-start": with_account(page, FOUND),
    "account": with_account(page, 422),
    "token-take-back": page(UNKNOWN, FOUND, UNKNOWN, UNKNOWN, UNKNOWN),  # the member's
    "team-make": with_account(page, FOUND),
    "team-invite": of_run(page, MADE, Role.OWNER),
    "invitation-take-back": of_run(page, FOUND, Role.OWNER),
    "team-member": of_run(page, FOUND, Role.OWNER),
    "webhooks": of_run(page, MADE, Role.OWNER),
    "webhook-remove": of_run(page, FOUND, Role.OWNER),
    "notices-read": with_account(page, FOUND),
    "runs-bulk": with_account(page, FOUND),  # in silence: which of the runs are there is secret
    "runs-save-view": with_account(page, FOUND),
    "runs-forget-view": page(UNKNOWN, FOUND, UNKNOWN, UNKNOWN, UNKNOWN),  # the member's
    "run-stop": of_run(page, FOUND, Role.EDITOR),
    "run-change": of_run(page, FOUND, Role.EDITOR),
    "run-again": of_run(page, FOUND),
    "run-export": of_run(page, FOUND),
    "run-give": of_run(page, FOUND, Role.OWNER),
    "run-share": of_run(page, FOUND, Role.EDITOR),
    "run-take-back": of_run(page, FOUND, Role.EDITOR),
    "make": of_run(api, OK),
    "again": of_run(api, MADE),
    "comment": of_run(api, MADE),
    "restore": with_account(api, UNKNOWN),  # it was not deleted
    "stop": of_run(api, OK, Role.EDITOR),
    "shared-run": anyone(WRONG_METHOD),
    "shared-run-log": anyone(WRONG_METHOD),
}
OPEN_POSTS = {"welcome", "invited", "shared-run", "shared-run-log"}  # those that ask for no login
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
