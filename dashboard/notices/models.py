"""What somebody is told of, and what a team's other tools are told of."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Kind(models.TextChoices):
    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"
    LOST = "lost"
    MENTIONED = "mentioned"
    ANSWERED = "answered"


class Notice(models.Model):
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notices")
    run = models.ForeignKey("runs.Run", on_delete=models.CASCADE, related_name="notices")
    kind = models.CharField(max_length=9, choices=Kind.choices)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    words = models.CharField(max_length=200, blank=True)  # why it ended so, or the beginning of what was said
    made_at = models.DateTimeField(auto_now_add=True)
    read_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-made_at", "-pk"]
        indexes = [models.Index(fields=["user", "-made_at"])]


class Webhook(models.Model):
    """An address of another tool. The secret signs what is sent there, so it has to be kept as it is."""

    team = models.ForeignKey("accounts.Team", on_delete=models.CASCADE, related_name="webhooks")
    url = models.URLField(max_length=500)
    secret = models.CharField(max_length=64)
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]


class Delivery(models.Model):
    """Something to be sent to a webhook, until it is there or was tried often enough."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=40)
    body = models.JSONField()
    made_at = models.DateTimeField(auto_now_add=True)
    tries = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(null=True, db_index=True)  # None: it will not be tried again
    done_at = models.DateTimeField(null=True)
    answer = models.CharField(max_length=200, blank=True)  # of the last try

    class Meta:
        ordering = ["-pk"]
