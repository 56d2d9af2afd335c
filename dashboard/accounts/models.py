"""Tokens by which programs act for their user, and failed attempts, kept for minutes. Users are Django's own."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class ApiToken(models.Model):
    """Only the token's digest is kept; what a program sends is shown once, when the token is made."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=60)
    token_digest = models.CharField(max_length=64, unique=True)
    scopes = models.JSONField(default=list)  # keys of accounts.tokens.SCOPES
    made_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-made_at"]

    def __str__(self) -> str:
        return self.name


class FailedLogin(models.Model):
    name = models.CharField(max_length=150)
    address = models.CharField(max_length=45)
    at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["address", "at"])]
