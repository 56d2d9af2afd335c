import json

import pytest

from dashboard.runs.models import Run, State
from trainer.presets import PRESETS
from trainer.spec import JobSpec


@pytest.fixture
def client(people):
    return people.client("member")


def post(client, path, body=None):
    data = body if isinstance(body, (str, bytes)) else json.dumps(body)
    return client.post(f"/api/v1/{path}", data, content_type="application/json")


def test_presets(client):
    found = client.get("/api/v1/presets").json()
    assert [one["key"] for one in found] == list(PRESETS)
    assert found[0]["ranks"] == 4
    assert JobSpec.model_validate(found[0]["spec"]) == next(iter(PRESETS.values())).spec


def test_runs_come_in_pages(client, people):
    for _ in range(2):
        post(client, "runs", {"steps": 1})
    first = client.get("/api/v1/runs?size=2").json()
    assert (first["count"], first["page"], first["pages"], len(first["runs"])) == (3, 1, 2, 2)
    assert client.get("/api/v1/runs?size=2&page=2").json()["runs"][0]["id"] == people.run.pk


@pytest.mark.parametrize("query, field", [("page=0", "page"), ("page=x", "page"), ("size=0", "size"), ("size=1000", "size")])
def test_a_page_that_is_none_is_refused(client, query, field):
    response = client.get(f"/api/v1/runs?{query}")
    assert response.status_code == 422
    assert [one["field"] for one in response.json()["errors"]] == [field]


def test_one_run(client, people):
    found = client.get(f"/api/v1/runs/{people.run.pk}").json()
    assert (found["id"], found["state"], found["ranks"], found["place_in_queue"]) == (people.run.pk, "queued", 4, 1)
    assert found["url"] == f"http://testserver/runs/{people.run.pk}/"
    assert found["theory"]["bubble_share"] == pytest.approx(3 / 11)
    assert [address["pp"] for address in found["grid"]] == [0, 1, 2, 3]


def test_a_run_that_is_none_is_a_problem(client):
    response = client.get("/api/v1/runs/nosuchrun1")
    assert response.status_code == 404
    assert response["Content-Type"] == "application/problem+json"
    assert response.json() == {"type": "about:blank", "title": "There is no such run", "status": 404, "errors": []}


def test_launching_a_job(client, people):
    response = post(client, "runs", {"name": "by api", "steps": 3})
    assert response.status_code == 201
    run = Run.objects.get(pk=response.json()["id"])
    assert (run.name, run.spec, run.owner) == ("by api", JobSpec(name="by api", steps=3), people.user("member"))


def test_launching_a_preset_with_changes(client):
    response = post(client, "runs", {"preset": "pipeline-x-data", "set": {"steps": 2, "schedule.name": "gpipe"}})
    spec = Run.objects.get(pk=response.json()["id"]).spec
    assert (spec.grid.pp, spec.grid.dp, spec.steps, spec.schedule.name) == (2, 2, 2, "gpipe")


@pytest.mark.parametrize("body, field, message", [
    ("{", "", "this is not JSON"),
    ("[" * 100_000, "", "this is not JSON"),
    ("", "", "this is not JSON"),
    (b"\xff", "", "this is not JSON"),
    ([1], "", "a job is a JSON object"),
    ('{"steps": NaN}', "", "NaN is not a number"),
    ({"steps": 0}, "steps", "1 or more would do"),
    ({"steps": 10**9}, "steps", "1000000 or less would do"),
    ({"spteps": 3}, "spteps", "there is no such field"),
    ({"grid": {"pp": 3}}, "grid.pp", "1, 2 or 4 would do"),
    ({"grid": {"dp": 128}, "batch": 1024}, "grid.dp", "LOCKSTEP_MOST_RANKS"),
    ({"batch": 33}, "batch", "32 or 40 would do"),
    ({"preset": "pipeline-2f2b"}, "preset", "there is no such preset"),
    ({"preset": None}, "preset", "there is no such preset"),
    ({"preset": "ddp-digits", "steps": 3}, "steps", "beside `preset` only `set`"),
    ({"preset": "ddp-digits", "set": {"steps": "3"}}, "steps", "a whole number would do"),
    ({"preset": "ddp-digits", "set": 3}, "set", "an object of changes would do"),
])
def test_a_job_that_cannot_run_is_a_problem_that_names_the_field(client, body, field, message):
    before = Run.objects.count()
    response = post(client, "runs", body)
    assert response.status_code == 422
    assert response["Content-Type"] == "application/problem+json"
    error = response.json()["errors"][0]
    assert set(error) == {"field", "given", "message"}
    assert error["field"] == field
    assert message in error["message"]
    assert Run.objects.count() == before


def test_a_body_that_is_too_large_is_refused(client):
    assert post(client, "runs", {"name": "x" * 1_100_000}).status_code == 400


def test_stopping(client, people):
    path = f"runs/{people.run.pk}/stop"
    Run.objects.update(state=State.RUNNING)
    assert post(client, path).json() == {"state": "stopping", "stopped": True}
    response = post(client, path)
    assert (response.status_code, response.json()) == (409, {"state": "stopping", "stopped": False})


def test_strangers_get_401_and_not_a_login_page(people):
    response = people.client("nobody").get("/api/v1/runs")
    assert (response.status_code, response["Content-Type"]) == (401, "application/problem+json")
    assert response["WWW-Authenticate"].startswith("Bearer")
    assert "API token" in response.json()["title"]


def test_a_post_needs_the_csrf_token(people):
    client = people.client("member", enforce_csrf_checks=True)
    assert post(client, "runs", {"steps": 1}).status_code == 403
    client.get("/launch/")
    token = client.cookies["lockstep_csrf"].value
    response = client.post("/api/v1/runs", '{"steps": 1}', content_type="application/json", headers={"X-CSRFToken": token})
    assert response.status_code == 201


def test_the_description_covers_every_path_and_the_job(client):
    described = client.get("/api/v1/openapi.json").json()
    assert {path.removeprefix("/api/v1/") for path in described["paths"]} == {
        "me", "presets", "workers", "compare", "runs", "runs/{run_id}", "runs/{run_id}/stop", "runs/{run_id}/again",
        "runs/{run_id}/restore", "runs/{run_id}/team", "runs/{run_id}/steps", "runs/{run_id}/logs/{rank}", "runs/{run_id}/links",
        "runs/{run_id}/links/{link_id}", "runs/{run_id}/exports", "runs/{run_id}/exports/{key}",
        "runs/{run_id}/exports/{key}/file", "runs/{run_id}/picture", "runs/{run_id}/comments",
        "runs/{run_id}/comments/{comment_id}",
        "bulk", "views", "views/{view_id}", "notices", "notices/read", "teams", "teams/{team_id}",
        "teams/{team_id}/members/{name}", "teams/{team_id}/invitations", "teams/{team_id}/invitations/{invitation_id}",
        "teams/{team_id}/webhooks", "teams/{team_id}/webhooks/{hook_id}",
    }
    assert described["components"]["securitySchemes"]["Token"] == {"type": "http", "scheme": "bearer"}
    body = described["paths"]["/api/v1/runs"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    job = body["oneOf"][1]
    assert set(job["properties"]) == set(JobSpec.model_fields)
    assert missing_references(described) == set()


def missing_references(described):
    """Schemas that are pointed at and not there."""
    wanted = {part.split('"')[0] for part in json.dumps(described).split("#/components/schemas/")[1:]}
    return wanted - set(described["components"]["schemas"])
