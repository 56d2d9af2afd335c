"""Failed logins, kept for minutes: enough to slow down guessing. Users are Django's own."""

from __future__ import annotations

from django.db import models


class FailedLogin(models.Model):
    name = models.CharField(max_length=150)
    address = models.CharField(max_length=45)
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["address", "at"])]
