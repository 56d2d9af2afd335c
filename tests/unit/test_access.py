"""Every address, for every person."""

import re
import secrets

import pytest
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from dashboard.accounts import teams, tokens
from dashboard.api.router import router
from dashboard.comments import services as comments
from dashboard.live.routing import websocket_urlpatterns
from dashboard.notices.models import Webhook
from dashboard.roles import Role
from dashboard.runs import services
from dashboard.runs.models import SavedView
from tests.answers import EMPTY, GET, LOGIN, OK, OPEN_POSTS, POST, SOCKETS, UNKNOWN, api, of_run
from tests.people import EVERYBODY, gather
from trainer.presets import PRESETS

API = (
    "openapi-json", "openapi-view", "api-root", "presets", "list_runs", "show", "stop", "me", "workers", "steps", "log", "links",
    "give", "comments", "comment", "edit_comment", "delete_comment", "compare", "again", "restore", "take_back", "change",
    "delete", "share", "exports", "make", "export_file", "picture", "bulk", "list_views", "save_view", "forget_view",
    "list_notices", "read_notices", "make_team", "show_team", "set_role", "remove_member", "invite", "take_invitation_back",
    "hooks", "add_hook", "remove_hook", "launch_run",
)
NAMESPACES = dict.fromkeys(API, "api:")
BODIES = {
    "runs-bulk": {"do": "archive"}, "again": {"schedule": "gpipe"}, "team-make": {"name": "new"},
    "launch_run": {"preset": "ddp-digits"}, "bulk": {"do": "archive", "runs": ["nosuchrun1"]},
    "save_view": {"name": "mine", "address": "q=is:mine"},
    "make_team": {"name": "new"}, "invite": {"role": "viewer"}, "add_hook": {"url": "https://1.1.1.1/hook"},
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
    if name in ("set_role", "remove_member"):
        values["name"] = "viewer"
    values |= {"welcome": {"token": "x" * 64}, "invited": {"token": invitation_token}}.get(name, {})
    found = reverse(NAMESPACES.get(name, "") + name, kwargs={key: values[key] for key in patterns()[name].pattern.converters})
    if name.endswith("-search"):
        return f"{found}?q=F0"
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


def every_pattern(resolver):
    for one in resolver.url_patterns:
        yield from every_pattern(one) if isinstance(one, URLResolver) else [one]


def test_the_table_knows_every_address():
    names = [one.name for one in every_pattern(get_resolver())]
    assert sorted(names) == sorted(set(names)), "two addresses of one name: the table would know one of them"
    assert set(names) == set(GET)


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


def test_the_table_knows_every_socket():
    """Who may open each is tested on real ones: tests/stack/test_live_socket.py, and test_live_people.py for the news."""
    assert {str(one.pattern) for one in websocket_urlpatterns} == SOCKETS


OTHERS = [
    ("patch", "edit_comment", '{"text": "better"}', api(UNKNOWN, OK, UNKNOWN, UNKNOWN, UNKNOWN)),  # the member's
    ("delete", "delete_comment", "", api(UNKNOWN, EMPTY, UNKNOWN, UNKNOWN, UNKNOWN)),
    ("patch", "change", '{"pinned": true}', of_run(api, OK, Role.EDITOR)),
    ("put", "give", '{"team": null}', of_run(api, OK, Role.OWNER)),
    ("delete", "delete", "", of_run(api, 409, Role.OWNER)),  # it has not ended
    ("delete", "take_back", "", of_run(api, EMPTY, Role.EDITOR)),
    ("delete", "forget_view", "", api(UNKNOWN, EMPTY, UNKNOWN, UNKNOWN, UNKNOWN)),  # the member's
    ("put", "set_role", '{"role": "editor"}', of_run(api, OK, Role.OWNER)),
    ("delete", "remove_member", "", api(EMPTY, EMPTY, 403, EMPTY, UNKNOWN)),  # the viewer may leave
    ("delete", "take_invitation_back", "", of_run(api, EMPTY, Role.OWNER)),
    ("delete", "remove_hook", "", of_run(api, EMPTY, Role.OWNER)),
]


def test_the_table_knows_every_call_of_the_api():
    """GET and POST are in tables of their own, the rest in OTHERS."""
    known = {("GET", name) for name in GET} | {("POST", name) for name in POST}
    known |= {(method.upper(), name) for method, name, _, _ in OTHERS}
    calls = {(method, operation.view_func.__name__)
             for view in router.path_operations.values() for operation in view.operations for method in operation.methods}
    assert calls - known == set()


@pytest.mark.parametrize("who", EVERYBODY)
@pytest.mark.parametrize("method, name, body, answers", OTHERS)
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


@pytest.mark.parametrize("who", ["owner", "member"])
@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 10**40])
def test_a_number_beyond_every_database_is_one_that_is_not_there(people, who, number):
    client, team = people.client(who), people.team.pk
    assert client.get(f"/teams/{number}/").status_code == 404
    for path in (f"/teams/{team}/members/{number}/", f"/teams/{team}/invitations/{number}/take-back/", f"/views/{number}/forget/",
                 f"/teams/{team}/webhooks/{number}/remove/", f"/account/tokens/{number}/take-back/",
                 f"/runs/{people.run.pk}/share/{number}/take-back/"):
        assert client.post(path, {"do": "remove"}).status_code == 404, path
