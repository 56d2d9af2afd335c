"""Teams: ways in, roles, and whose runs are seen."""

import json
import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.http import Http404
from django.test import Client
from django.utils import timezone

from dashboard.accounts import teams
from dashboard.accounts.models import Invitation, Membership
from dashboard.roles import Role
from dashboard.runs import services
from dashboard.runs.access import access, visible_runs
from dashboard.runs.models import Run
from tests.people import PASSWORD
from trainer.presets import PRESETS

NEW = {"username": "ada", "password1": PASSWORD, "password2": PASSWORD}


@pytest.fixture
def invite(people):
    def made(role=Role.EDITOR, days=7, most_uses=1):
        return teams.invite(people.team, people.user("member"), role, days, most_uses)

    return made


def test_a_link_is_made_shown_once_and_kept_as_a_digest(people):
    client = people.client("member")
    answer = client.post(f"/teams/{people.team.pk}/invite/", {"role": "editor", "days": 3, "most_uses": 2})
    token = re.search(r'value="http://testserver/invited/([\w-]+)/"', answer.content.decode())[1]
    kept = Invitation.objects.get()
    assert (kept.role, kept.most_uses, kept.uses) == (Role.EDITOR, 2, 0)
    assert timedelta(days=2.9) < kept.ends_at - timezone.now() <= timedelta(days=3)
    assert len(token) * 6 >= 128
    assert token not in json.dumps(list(Invitation.objects.values()), default=str)
    assert token not in client.get(f"/teams/{people.team.pk}/").content.decode()


def test_a_stranger_makes_an_account_and_sees_the_teams_runs(people, invite):
    _, token = invite()
    client = Client()
    before = client.session.session_key
    assert client.post(f"/invited/{token}/", NEW)["Location"] == f"/teams/{people.team.pk}/"
    assert client.session.session_key != before
    assert people.run.name in client.get("/").content.decode()
    assert not User.objects.get(username="ada").is_superuser
    assert Client().get(f"/invited/{token}/").status_code == 404  # it was for one


def test_an_account_that_is_there_joins_by_a_press(people, invite):
    invitation, token = invite()
    client = people.client("outsider")
    assert client.get(f"/runs/{people.run.pk}/").status_code == 404
    assert client.get(f"/invited/{token}/").status_code == 200
    assert not people.team.memberships.filter(user=people.user("outsider")).exists()  # a look does nothing
    client.post(f"/invited/{token}/")
    assert client.get(f"/runs/{people.run.pk}/").status_code == 200
    invitation.refresh_from_db()
    assert invitation.uses == 1


@pytest.mark.parametrize("change", [
    {"ends_at": timezone.now() - timedelta(seconds=1)}, {"taken_back_at": timezone.now()}, {"uses": 1},
])
def test_a_link_that_is_over_lets_nobody_in(people, invite, change):
    _, token = invite()
    Invitation.objects.update(**change)
    assert Client().get(f"/invited/{token}/").status_code == 404
    assert Client().post(f"/invited/{token}/", NEW).status_code == 404
    assert not User.objects.filter(username="ada").exists()


def test_a_link_of_somebody_who_is_no_owner_any_more_lets_nobody_in(people, invite):
    _, token = invite()
    Membership.objects.filter(user=people.user("editor")).update(role=Role.OWNER)
    teams.set_role(people.team, people.user("member").pk, Role.EDITOR)
    assert Client().get(f"/invited/{token}/").status_code == 404


def test_the_last_place_is_taken_once_and_leaves_no_account_behind(people, invite):
    invitation, token = invite()
    stale = teams.find_invitation(token)
    teams.accept(invitation, people.user("outsider"))
    with pytest.raises(Http404):
        teams.accept(stale, User.objects.create_user("late", password=PASSWORD))
    assert people.team.memberships.count() == 4


def test_a_role_that_one_has_never_shrinks_by_a_link(people, invite):
    invitation, token = invite(Role.VIEWER)
    people.client("member").post(f"/invited/{token}/")
    invitation.refresh_from_db()
    assert invitation.uses == 0
    assert people.team.memberships.get(user=people.user("member")).role == Role.OWNER


def test_a_team_keeps_an_owner(people):
    url = f"/teams/{people.team.pk}/members/{people.user('member').pk}/"
    for body in ({"do": "remove"}, {"do": "role", "role": "viewer"}):
        page = people.client("member").post(url, body, follow=True)
        assert "would have no owner" in page.content.decode()
    assert people.team.memberships.get(user=people.user("member")).role == Role.OWNER


def test_who_leaves_sees_the_teams_runs_no_more_and_keeps_her_own(people):
    editor = people.user("editor")
    own = services.launch(PRESETS["ddp-digits"].spec, editor, team=people.team)
    url = f"/teams/{people.team.pk}/members/{editor.pk}/"
    assert people.client("viewer").post(url, {"do": "remove"}).status_code == 403
    assert people.client("editor").post(url, {"do": "remove"}).status_code == 302
    assert set(visible_runs(editor)) == {own}


def test_a_private_run_is_seen_by_its_owner_alone(people):
    services.give(people.run, None)
    assert [who for who in ("member", "editor", "viewer", "outsider") if visible_runs(people.user(who)).exists()] == ["member"]


def test_one_launches_for_ones_teams_alone(people):
    form = {"json": '{"steps": 1}', "team": people.team.pk}
    people.client("editor").post("/launch/", form)
    assert Run.objects.get(owner=people.user("editor")).team == people.team
    for who in ("viewer", "outsider"):
        refused = people.client(who).post("/launch/", form)
        assert refused.status_code == 422
        assert not Run.objects.filter(owner=people.user(who)).exists()
    answer = people.client("viewer").post(f"/api/v1/runs?team={people.team.pk}", '{"steps": 1}', content_type="application/json")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "team")


def test_what_a_role_does_not_allow_is_left_as_it_was_and_said(people):
    page = people.client("viewer").post("/bulk/", {"do": "archive", "run": people.run.pk}, follow=True)
    assert "1 run left as they were" in page.content.decode()
    people.run.refresh_from_db()
    assert people.run.archived_at is None


def test_the_list_finds_a_teams_runs(people):
    services.launch(PRESETS["ddp-digits"].spec, people.user("member"))
    found = people.client("member").get("/api/v1/runs?q=team:crew").json()["runs"]
    assert [(run["id"], run["team"]["name"]) for run in found] == [(people.run.pk, "crew")]


def test_access_takes_one_query(people, django_assert_num_queries):
    viewer = people.user("viewer")
    with django_assert_num_queries(1):
        assert access(viewer, people.run.pk).role == Role.VIEWER
