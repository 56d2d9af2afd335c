"""The list's search language: what each condition finds, and what is said of one that makes no sense."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from dashboard.accounts import teams
from dashboard.runs import curation, finding, services
from dashboard.runs.models import Run, State
from dashboard.runs.query import LONGEST, parse
from trainer.presets import PRESETS


@pytest.fixture
def ada(db):
    """With five runs: a (1F1B, failed), b (GPipe), c (2 × 2), d (perceptron), e (1F1B, archived)."""
    user = User.objects.create_superuser("ada")
    presets = {"a": "pipeline-1f1b", "b": "pipeline-gpipe", "c": "pipeline-x-data", "d": "ddp-digits", "e": "pipeline-1f1b"}
    figures = {"a": {"bubble_share": 0.28, "step_seconds": 0.66}, "b": {"bubble_share": 0.31, "loss_last": 2.4},
               "c": {"bubble_share": None}, "d": {}, "e": {"bubble_share": 0.9}}
    for at, (name, key) in enumerate(presets.items()):
        run = services.launch(PRESETS[key].spec, user if name != "d" else User.objects.create_user("bob"))
        created = timezone.now() - timedelta(days=at, minutes=1)
        Run.objects.filter(pk=run.pk).update(name=name, figures=figures[name], created_at=created)
    Run.objects.filter(name="a").update(state=State.FAILED, note="the slow machine")
    Run.objects.filter(name="e").update(archived_at=timezone.now())
    Run.objects.filter(name="b").update(pinned_at=timezone.now())
    curation.tag([Run.objects.get(name="b")], ["baseline", "Odd"])
    return user


def names(user, text, sort="-created"):
    query = parse(text, user)
    assert query.errors == []
    return "".join(run.name for run in finding.find(user, query, sort))


@pytest.mark.parametrize("text, found", [
    ("", "bacd"), ("state:failed", "a"), ("state:failed,queued", "bacd"), ("-state:failed", "bcd"), ("STATE=failed", "a"),
    ("model:gpt", "bac"), ("schedule:gpipe", "b"), ("schedule:1f1b", "ac"), ("owner:Bob", "d"), ("is:mine", "bac"),
    ("tag:baseline", "b"), ("-tag:odd", "acd"), ("tag:none", ""), ("pp:4", "ba"), ("pp>=2 dp>1", "c"), ("dp=4", "d"),
    ("bubble>30%", "b"), ("bubble > 30 %", "b"), ("bubble<0.3", "a"), ("-bubble>30%", "acd"), ("loss<2.5", "b"),
    ("step>500ms", "a"), ("step<0.5s", ""), ("steps>=30", "bacd"), ("age<1d", "a"), ("age>2d", "cd"), ("is:pinned", "b"),
    ("is:archived", "e"), ("slow", "a"), ('"slow machine"', "a"), ('"machine slow"', ""), ("-slow", "bcd"), ("base", "b"),
    ("device:cpu", "bacd"), ('"unfinished', ""), ("state:failed slow", "a"),
])
def test_a_search_finds(ada, text, found):
    assert names(ada, text) == found


@pytest.mark.parametrize("sort, order", [
    ("bubble", "abcd"), ("-bubble", "bacd"), ("name", "abcd"), ("-name", "dcba"), ("created", "dcba"), ("-loss", "bacd"),
])
def test_a_list_is_sorted_and_what_has_no_value_comes_last(ada, sort, order):
    assert names(ada, "", sort) == order


@pytest.mark.parametrize("text, field, would", [
    ("colour:red", "colour", "there is no such field"), ("state:asleep", "state", "queued, starting"),
    ("bubble>many", "bubble", "30% or 0.3"), ("bubble>30", "bubble", "30% or 0.3"), ("bubble>3s", "bubble", "30% or 0.3"),
    ("step>5parsec", "step", "step>200ms"), ("pp>two", "pp", "pp>=2"), ("age:7d", "age", "age<7d"), ("age<1e9d", "age", "age<7d"),
    ("state>failed", "state", "a colon would do"), ("is:odd", "is", "pinned, archived"), ("schedule:nope", "schedule", "1f1b"),
    ("tag:,", "tag", "a name would do"), ("https://x", "https", "quotes around"),
    ("x" * (LONGEST + 1), "q", f"at most {LONGEST}"),
])
def test_what_makes_no_sense_is_named_and_the_rest_holds(ada, text, field, would):
    query = parse(text + " state:failed" if len(text) < LONGEST else text, ada)
    assert [error.field for error in query.errors] == [field]
    assert would in str(query.errors[0])
    if len(text) < LONGEST:
        assert [run.name for run in finding.find(ada, query)] == ["a"]


def test_columns_that_the_database_reads_from_json_follow_it(ada):
    run = Run.objects.get(name="c")
    assert (run.model, run.pp, run.dp, run.steps, run.bubble) == ("gpt", 2, 2, 30, None)
    services.note(run.pk, figures={"bubble_share": 0.5, "loss_last": None})
    run.refresh_from_db()
    assert (run.bubble, run.loss) == (0.5, None)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the words of SQLite's planner")
@pytest.mark.parametrize("text", ["", "bubble>30%", "slow", "-slow step>1s", "tag:odd pp>=2", "owner:bob"])
@pytest.mark.parametrize("sort", ["-created", "loss", "name"])
def test_no_search_reads_rows_with_their_pictures(ada, text, sort):
    """Only the index that holds all that lists are searched by (SQLite takes columns from it before it turns to a row);
    and, for words, the rows that have notes."""
    bob = User.objects.get(username="bob")
    teams.make("crew", bob)
    found = finding.find(bob, parse(text, bob), sort).values_list("pk")
    plan = [line for line in found.explain().splitlines() if "runs_run" in line and "runs_runtag" not in line]
    assert plan and all(" INDEX runs_listed " in line for line in plan), plan
    noted = [line for line in found.explain().splitlines() if "runs_noted" in line]
    assert len(noted) == text.count("slow")
