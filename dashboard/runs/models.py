"""A run, and the links by which it is shown to others. Only `services` writes them."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models

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


class Run(models.Model):
    id = models.CharField(primary_key=True, max_length=16, default=new_run_id, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="runs")
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

    class Meta:
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["state", "created_at"]), models.Index(fields=["owner", "-created_at"])]

    def __str__(self) -> str:
        return f"{self.id} {self.name}"

    @property
    def spec(self) -> JobSpec:
        return JobSpec.model_validate(self.spec_json)

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED


class ShareLink(models.Model):
    """A way in for whoever holds the token. Only the token's digest is kept."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="share_links")
    token_digest = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    taken_back_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at"]
