"""What people say of a run, or of a spot in it."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from dashboard.runs.models import Run


class About(models.TextChoices):
    RUN = "run"
    RANGE = "range"
    SPAN = "span"
    RANK = "rank"


class Comment(models.Model):
    """A thread is a comment without a parent, and those whose parent it is; it is about what its first one is about.

    `revision` grows with every change in the run, so that a page asks for what came after what it has.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="comments")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    parent = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="replies")
    text = models.TextField(max_length=4000)  # Markdown; empty once it is deleted
    about = models.CharField(max_length=5, choices=About.choices, default=About.RUN)
    from_ns = models.FloatField(null=True)  # on the run's clock: of a range, or a span's start and end
    to_ns = models.FloatField(null=True)
    rank = models.PositiveIntegerField(null=True)
    lane = models.PositiveSmallIntegerField(null=True)
    revision = models.PositiveIntegerField()
    made_at = models.DateTimeField(auto_now_add=True)
    edited_at = models.DateTimeField(null=True)
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["revision"]
        indexes = [models.Index(fields=["run", "revision"])]

    def __str__(self) -> str:
        return self.text[:60]
