"""A run, what people say of it, and the links by which it is shown to others. Only `services` writes them."""

from __future__ import annotations

import secrets
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Length, NullIf

from dashboard.runs import shown
from trainer.spec import JobSpec

_ID_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # none that are read as another


def new_run_id() -> str:
    return "".join(secrets.choice(_ID_LETTERS) for _ in range(10))


class State(models.TextChoices):
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"


WAITING = (State.QUEUED,)
ACTIVE = (State.STARTING, State.RUNNING, State.STOPPING)
ENDED = (State.FINISHED, State.FAILED, State.STOPPED, State.LOST)


def _of_json(path: str, field: type[models.Field[Any, Any]], **options: Any) -> models.GeneratedField:
    """A column that the database itself reads from JSON, so that lists filter and sort by it and it is never out of step."""
    made = field(**options)
    null = models.Value("null", output_field=models.TextField())  # SQLite's text of JSON's null, which a cast would make 0
    value: Any = NullIf(KT(path), null, output_field=models.TextField())
    if not isinstance(made, models.CharField):
        value = Cast(value, made)
    return models.GeneratedField(expression=value, output_field=made, db_persist=True)


_LISTED = ("archived_at", "deleted_at", "-pinned_at", "-created_at", "id")
_SOUGHT = ("owner", "team", "state", "device", "model", "schedule", "dp", "pp", "cp", "tp", "ep", "steps", "bubble", "loss",
           "step_seconds", "steps_done", "name")


class Run(models.Model):
    id = models.CharField(primary_key=True, max_length=16, default=new_run_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="runs")
    team = models.ForeignKey("accounts.Team", null=True, on_delete=models.SET_NULL, related_name="runs")  # None: it is private
    name = models.CharField(max_length=120)
    spec_json = models.JSONField()
    device = models.CharField(max_length=8)
    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    reason = models.TextField(blank=True)  # why it failed, stopped or was lost, in words
    failure = models.JSONField(null=True)  # rank, exit_code, signal, log_tail
    worker = models.CharField(max_length=120, blank=True)
    realtime = models.BooleanField(null=True)  # whether paced ranks were granted the real-time class
    steps_done = models.PositiveIntegerField(default=0)
    figures = models.JSONField(default=dict)  # keys of trainer.trace.figures
    picture = models.BinaryField(null=True)  # kinds by lane and column, see runs.pictures
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    sealed_at = models.DateTimeField(null=True)  # all it recorded is on disk
    kept_at = models.DateTimeField(null=True)  # and in the storage beside, where one is set
    note = models.TextField(blank=True, max_length=4000)
    comments_revision = models.PositiveIntegerField(default=0)  # grows with every change of its comments
    pinned_at = models.DateTimeField(null=True)
    archived_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)  # seen by nobody from then on; may come back until it is purged

    model = _of_json("spec_json__model__name", models.CharField, max_length=40)
    schedule = _of_json("spec_json__schedule__name", models.CharField, max_length=40)
    dp = _of_json("spec_json__grid__dp", models.IntegerField)
    pp = _of_json("spec_json__grid__pp", models.IntegerField)
    cp = _of_json("spec_json__grid__cp", models.IntegerField)
    tp = _of_json("spec_json__grid__tp", models.IntegerField)
    ep = _of_json("spec_json__grid__ep", models.IntegerField)
    steps = _of_json("spec_json__steps", models.IntegerField)
    bubble = _of_json("figures__bubble_share", models.FloatField)
    loss = _of_json("figures__loss_last", models.FloatField)
    step_seconds = _of_json("figures__step_seconds", models.FloatField)
    note_letters = models.GeneratedField(expression=Length("note"), output_field=models.IntegerField(), db_persist=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["state", "created_at"]),
            # A list is a stretch of one of these, and is counted in it: no row of it is touched. First everybody's, with
            # all that lists are searched and sorted by, since rows carry pictures; then one owner's, then one team's.
            models.Index(fields=[*_LISTED, *_SOUGHT], name="runs_listed"),
            models.Index(fields=["note_letters"], name="runs_noted"),
            models.Index(fields=["owner", *_LISTED], name="runs_listed_of_owner"),
            models.Index(fields=["team", *_LISTED], name="runs_listed_of_team"),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.name}"

    @property
    def spec(self) -> JobSpec:
        return JobSpec.model_validate(self.spec_json)

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED


class ShareLink(models.Model):
    """A way in for whoever holds the token, until it ends or is taken back. Only the token's digest is kept."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="share_links")
    token_digest = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=60, blank=True)
    view = models.CharField(max_length=shown.LONGEST, blank=True)  # what its page opens at, see runs.shown
    with_comments = models.BooleanField(default=False)
    uses = models.PositiveIntegerField(default=0)  # how often its page was opened
    last_used_at = models.DateTimeField(null=True)
    ends_at = models.DateTimeField(null=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    taken_back_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at"]


class RunTag(models.Model):
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="tags")
    name = models.CharField(max_length=40)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["run", "name"], name="a_tag_once_a_run")]
        indexes = [models.Index(fields=["name"])]

    def __str__(self) -> str:
        return self.name


class SavedView(models.Model):
    """A list of runs that somebody comes back to: what stands behind the question mark of its address."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    name = models.CharField(max_length=40)
    address = models.CharField(max_length=2000)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="a_view_once_a_name")]

    def __str__(self) -> str:
        return self.name
