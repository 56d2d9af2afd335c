"""`manage.py prune`: what would go, what goes, and what stays."""

import io
import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from dashboard.runs import services
from dashboard.runs.models import Run, State
from trainer.folder import run_folder
from trainer.presets import PRESETS

pytestmark = pytest.mark.django_db


def prune(*words):
    out = io.StringIO()
    call_command("prune", *words, "--json", stdout=out)
    return json.loads(out.getvalue())


@pytest.fixture
def runs(home):
    """By name: each ended 100 days ago, and is as its name says."""
    made = {}
    for name in ("old", "pinned", "archived", "young", "running", "deleted"):
        run = made[name] = services.launch(PRESETS["ddp-digits"].spec, None, name)
        fields = {"name": name, "state": State.FINISHED, "ended_at": timezone.now() - timedelta(days=100)}
        fields |= {"young": {"ended_at": timezone.now()}, "running": {"state": State.RUNNING, "ended_at": None}}.get(name, {})
        marked = {"pinned": "pinned_at", "archived": "archived_at", "deleted": "deleted_at"}.get(name)
        Run.objects.filter(pk=run.pk).update(**fields, **({marked: timezone.now()} if marked else {}))
        folder = run_folder(home, run.pk) / "store"
        folder.mkdir(parents=True)
        (folder / "1.parquet").write_bytes(bytes(10_000))
    return made


def deleted():
    return set(Run.objects.filter(deleted_at__isnull=False).values_list("name", flat=True)) - {"deleted"}


@pytest.mark.parametrize("words, names", [
    (["--older-than", "90"], {"old", "archived"}), (["--older-than", "90", "--archived"], {"archived"}),
    (["--archived"], {"archived"}), (["--older-than", "101"], set()), (["--older-than", "0"], {"old", "archived", "young"}),
])
def test_what_a_dry_run_says_is_what_goes(runs, words, names):
    told = prune(*words, "--dry-run")
    assert (told["dry_run"], {run["name"] for run in told["runs"]}, deleted()) == (True, names, set())
    assert told["bytes"] == sum(run["bytes"] for run in told["runs"])
    assert all(10_000 <= run["bytes"] <= 20_480 for run in told["runs"])
    done = prune(*words)
    assert done == told | {"dry_run": False}
    assert deleted() == names


def test_what_is_pruned_can_come_back_like_anything_that_is_deleted(runs, home):
    prune("--older-than", "90")
    assert all(run_folder(home, run.pk).exists() for run in runs.values())
    assert Run.objects.count() == len(runs)


def test_people_get_a_line_a_run_and_the_sum(runs, capsys):
    call_command("prune", "--older-than", "90", "--dry-run")
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[0] for line in lines[:-1]} == {runs["old"].pk, runs["archived"].pk}
    assert lines[-1].startswith("2 runs, ") and lines[-1].endswith("bytes, would go.")


@pytest.mark.parametrize("words, said", [
    ([], "--older-than 90, or --archived"), (["--older-than", "-1"], "0 to 36500 would do"),
    (["--older-than", "soon"], "0 to 36500 would do"), (["--older-than", "nan"], "0 to 36500 would do"),
])
def test_a_wish_that_makes_no_sense_is_told_what_would_do(runs, words, said):
    with pytest.raises(CommandError, match=said):
        call_command("prune", *words)
    assert deleted() == set()


def test_without_redis_nothing_is_removed_at_once_and_the_command_fails(runs, home):
    out = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("prune", "--archived", "--now", "--json", stdout=out)
    assert json.loads(out.getvalue())["runs"] == [] and deleted() == set()
    assert run_folder(home, runs["archived"].pk).exists()
