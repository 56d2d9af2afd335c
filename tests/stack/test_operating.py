"""A stack as its operator sees it: metrics, structured logs, and old runs that go without a trace."""

import json
import sqlite3
import urllib.error
import urllib.request
from contextlib import closing

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.stack.stack import running_stack, wait_for

pytestmark = pytest.mark.stack

TOKEN = "a-token-of-the-operator"
GIVE_EVERYTHING = """
from django.contrib.auth.models import User
from dashboard.accounts import teams
from dashboard.comments import services as comments
from dashboard.notices import telling
from dashboard.notices.models import Webhook
from dashboard.runs import access, curation, links, services
from dashboard.runs.exports import making
from dashboard.runs.models import Run

ada = User.objects.get(username="ada")
run = Run.objects.get(pk={run!r})
Run.objects.filter(pk=run.pk).update(owner=ada)
team = teams.make({team!r}, ada)
Webhook.objects.create(team=team, url="https://127.0.0.1/", secret="s")
services.give(run, team)
run = Run.objects.get(pk=run.pk)
telling.run_ended(run)
links.share(run, ada)
curation.tag([run], ["old"])
run.comments.create(author=ada, text="look", revision=1)
making.make(run, "spans-csv")
"""


@pytest.fixture(scope="module")
def stack():
    with running_stack(LOCKSTEP_LOG_FORMAT="json", LOCKSTEP_METRICS_TOKEN=TOKEN) as running:
        running.create_user("ada")
        yield running


@pytest.fixture(scope="module")
def runs(stack):
    """Two runs that ended and are sealed, with everything that a run can have."""
    made = []
    for team in ("crew", "rivals"):
        run_id = stack.launch("pipeline-1f1b", "steps=4", "checkpoint_every=2")
        stack.wait_for_state(run_id, "finished")
        wait_for(lambda run_id=run_id: stack.run(run_id)["sealed_at"], 30, "it to be sealed")
        stack.manage("shell", "--no-imports", "-c", GIVE_EVERYTHING.format(run=run_id, team=team))
        made.append(run_id)
    return made


def metrics(stack):
    request = urllib.request.Request(f"{stack.url}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def test_the_server_is_ready_until_its_store_cannot_be_written(stack, runs):
    with urllib.request.urlopen(f"{stack.url}/readyz") as answer:
        assert json.load(answer)["ok"]
    folder, away = stack.home / "runs", stack.home / "runs-away"
    folder.rename(away)
    folder.write_text("in the way")
    try:
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{stack.url}/readyz")
        assert (refused.value.code, json.load(refused.value)["failed"]) == (503, ["store"])
    finally:
        folder.unlink()
        away.rename(folder)


def test_what_was_recorded_is_told_to_prometheus(stack, runs):
    figures = [stack.run(run_id)["figures"] for run_id in runs]

    def told():  # the recorder beats once a second
        found = metrics(stack)
        return found if found.get(("lockstep_spans_sealed_total",)) == sum(one["spans"] for one in figures) else None

    found = wait_for(told, 10, "the recorder's beat")
    assert found["lockstep_frames_sealed_total",] >= 2 * 4
    assert found["lockstep_frames_lost_total",] == found["lockstep_spans_lost_total",] == 0
    assert found["lockstep_runs", "finished"] == 2 and found["lockstep_queue_length", "cpu"] == 0
    assert found["lockstep_recorder_up",] == found["lockstep_workers",] == found["lockstep_database_up",] == 1
    assert 0 <= found["lockstep_recorder_lag_seconds",] < 60


@pytest.mark.parametrize("part", ["web", "recorder", "worker", "exporter"])
def test_every_line_of_a_log_is_an_object(stack, runs, part):
    lines = [json.loads(line) for line in (stack.home / "logs" / f"{part}.log").read_text().splitlines()]
    assert lines and all({"time", "level", "logger", "message", "process"} <= line.keys() for line in lines)


def test_a_run_can_be_found_in_the_recorders_and_the_workers_log(stack, runs):
    sealed = [json.loads(line) for line in (stack.home / "logs" / "recorder.log").read_text().splitlines()]
    assert [line["run"] for line in sealed if "is sealed" in line["message"]] == runs
    missing = stack.launch("pipeline-1f1b", "steps=4")
    stack.wait_for_state(missing, "finished")
    assert stack.python(f"door.put_in_queue({missing!r}, 'cpu')") is None

    def told():
        lines = [json.loads(line) for line in (stack.home / "logs" / "worker.log").read_text().splitlines()]
        return any(line.get("run") == missing and "is not waiting any more" in line["message"] for line in lines)

    wait_for(told, 30, "the worker to refuse it")


def leftovers(stack, run_id):
    """Every place that still knows the run: rows by their text, files by name, keys by name or member."""
    found = [str(path) for path in stack.home.rglob(f"*{run_id}*")]
    with closing(sqlite3.connect(f"file:{stack.home / 'lockstep.sqlite3'}?mode=ro", uri=True)) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            rows = database.execute(f'SELECT * FROM "{table}"').fetchall()
            found += [table for row in rows if any(run_id in str(value) for value in row)]
    for key in stack.client.scan_iter(count=1000):
        kind = stack.client.type(key)
        members = stack.client.smembers(key) if kind == b"set" else stack.client.lrange(key, 0, -1) if kind == b"list" else []
        if run_id.encode() in key or any(run_id.encode() in member for member in members):
            found.append(key.decode())
    return found


def test_a_run_that_is_pruned_leaves_nothing(stack, runs):
    gone, kept = runs
    stack.python(f"curation.archive([Run.objects.get(pk={gone!r})], True)")
    before = leftovers(stack, kept)
    folder = stack.home / "runs" / gone
    assert {"store", "logs", "checkpoints", "exports"} <= {path.name for path in folder.iterdir()}
    tables = {"runs_run", "runs_sharelink", "runs_runtag", "comments_comment", "notices_notice", "notices_delivery"}
    assert tables <= set(leftovers(stack, gone))
    told = json.loads(stack.manage("prune", "--archived", "--now", "--dry-run", "--json").stdout)
    assert [run["run"] for run in told["runs"]] == [gone] and folder.exists()
    assert json.loads(stack.manage("prune", "--archived", "--now", "--json").stdout) == told | {"dry_run": False}
    assert leftovers(stack, gone) == []
    assert sorted(leftovers(stack, kept)) == sorted(before)
