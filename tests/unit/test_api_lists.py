"""By the API: the same done to many runs, saved views, notices, and teams."""

import json

import pytest

from dashboard.accounts.models import Invitation, Membership
from dashboard.notices.models import Kind, Notice
from dashboard.runs import services
from dashboard.runs.models import Run, State
from trainer.presets import PRESETS


@pytest.fixture
def call(people):
    """call(who, method, path, body): status and JSON."""
    def called(who, method, path, body=None):
        answer = getattr(people.client(who), method)(f"/api/v1/{path}", *([json.dumps(body)] if body is not None else []),
                                                     **({"content_type": "application/json"} if body is not None else {}))
        return answer.status_code, json.loads(answer.content or "null")

    return called


def test_what_is_done_to_many_says_of_each_what_became_of_it(people, call):
    mine = services.launch(PRESETS["ddp-digits"].spec, people.user("viewer"))
    Run.objects.filter(pk=mine.pk).update(state=State.FINISHED)
    ids = [mine.pk, people.run.pk, "nosuchrun1"]
    status, found = call("viewer", "post", "bulk", {"do": "delete", "runs": ids})
    assert (status, found["done"]) == (200, [mine.pk])
    assert {one["run"]: one["why"] for one in found["left"]} == {
        people.run.pk: "your role in its team does not allow it", "nosuchrun1": "there is no such run"}
    assert call("viewer", "post", "bulk", {"do": "restore", "runs": ids})[1]["done"] == [mine.pk]
    assert call("member", "post", "bulk", {"do": "delete", "runs": [people.run.pk]})[1]["left"][0]["why"].startswith("it has not")
    stop = {"do": "stop", "runs": [people.run.pk]}
    assert call("member", "post", "bulk", stop)[1] == {"done": [people.run.pk], "left": []}
    assert call("member", "post", "bulk", stop)[1]["left"][0]["why"] == "there was nothing to stop"


def test_many_are_tagged_or_none_when_a_tag_is_none(people, call):
    assert call("member", "post", "bulk", {"do": "tag", "runs": [people.run.pk], "tags": ["a", "b"]})[0] == 200
    assert call("member", "get", f"runs/{people.run.pk}")[1]["tags"] == ["a", "b"]
    status, found = call("member", "post", "bulk", {"do": "tag", "runs": [people.run.pk], "tags": ["c", "d e"]})
    assert status == 422 and "a word of up to 40" in found["errors"][0]["message"]
    assert call("member", "post", "bulk", {"do": "explode", "runs": [people.run.pk]})[0] == 422
    assert call("member", "post", "bulk", {"do": "tag", "runs": []})[0] == 422


def test_views_are_saved_shown_and_forgotten_and_lead_nowhere_else(people, call):
    status, made = call("member", "post", "views", {"name": " slow  ones ", "address": "q=step>1s&next=https://evil.example"})
    assert (status, made["name"], made["address"]) == (201, "slow ones", "q=step%3E1s")
    assert call("member", "get", "views")[1] == [made]
    assert call("editor", "get", "views")[1] == []
    assert call("member", "post", "views", {"name": "x" * 41, "address": ""})[0] == 422
    assert call("member", "delete", f"views/{made['id']}")[0] == 204
    assert call("member", "get", "views")[1] == []


def test_notices_come_in_pages_and_are_read(people, call):
    member = people.user("member")
    Notice.objects.bulk_create(Notice(user=member, run=people.run, kind=Kind.FINISHED) for _ in range(3))
    found = call("member", "get", "notices?size=2&unread=true")[1]
    assert (found["count"], found["pages"], len(found["notices"])) == (3, 2, 2)
    assert call("editor", "get", "notices")[1]["count"] == 0
    assert call("member", "post", f"notices/read?run={people.run.pk}")[1] == {"read": 3}
    assert call("member", "get", "notices?unread=true")[1]["count"] == 0


def test_a_team_is_made_invited_to_and_left(people, call):
    status, team = call("outsider", "post", "teams", {"name": "compilers"})
    assert (status, team["role"], [one["name"] for one in team["members"]]) == (201, "owner", ["outsider"])
    status, invited = call("outsider", "post", f"teams/{team['id']}/invitations", {"role": "editor", "most_uses": 1})
    assert status == 201
    assert people.client("viewer").post(invited["url"].removeprefix("http://testserver")).status_code == 302
    assert call("viewer", "get", f"teams/{team['id']}")[1]["invitations"] == []  # owners alone are told
    assert Invitation.objects.get(pk=invited["id"]).uses == 1
    assert call("viewer", "delete", f"teams/{team['id']}/members/outsider")[0] == 403
    status, problem = call("outsider", "delete", f"teams/{team['id']}/members/outsider")
    assert status == 409 and "would have no owner" in problem["title"]
    assert call("outsider", "put", f"teams/{team['id']}/members/viewer", {"role": "owner"})[0] == 200
    assert call("outsider", "delete", f"teams/{team['id']}/members/outsider")[0] == 204
    assert list(Membership.objects.filter(team=team["id"]).values_list("user__username", flat=True)) == ["viewer"]


def test_a_webhook_is_added_with_its_secret_once_and_only_where_one_may_call(people, call):
    team = people.team.pk
    status, made = call("member", "post", f"teams/{team}/webhooks", {"url": "https://1.1.1.1/hook"})
    assert status == 201 and len(made["secret"]) >= 32
    assert call("member", "get", f"teams/{team}/webhooks")[1] == [{key: made[key] for key in ("id", "url", "made")}]
    status, problem = call("member", "post", f"teams/{team}/webhooks", {"url": "http://127.0.0.1:6379/"})
    assert status == 422 and problem["errors"][0]["field"] == "url"
    assert call("editor", "get", f"teams/{team}/webhooks")[0] == 403
