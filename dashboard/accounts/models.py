"""Teams and the ways into them, tokens by which programs act, and failed attempts, kept for minutes. Users are Django's own."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from dashboard.roles import Role


class Team(models.Model):
    name = models.CharField(max_length=60)
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=Role.choices)
    since = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["user__username"]
        constraints = [models.UniqueConstraint(fields=["team", "user"], name="once_in_a_team")]

    def __str__(self) -> str:
        return f"{self.user} in {self.team} as {self.role}"


class Invitation(models.Model):
    """A way into a team for whoever holds the token, so many times, until it ends. Only the token's digest is kept."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=8, choices=Role.choices)
    token_digest = models.CharField(max_length=64, unique=True)
    made_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    made_at = models.DateTimeField(auto_now_add=True)
    ends_at = models.DateTimeField()
    uses = models.PositiveIntegerField(default=0)
    most_uses = models.PositiveIntegerField()
    taken_back_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-made_at"]


class Identity(models.Model):
    """Who somebody is for an OpenID Connect provider: its number for her, which it gives to nobody else."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="identities")
    issuer = models.CharField(max_length=300)
    subject = models.CharField(max_length=255)
    since = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="one_account_an_identity")]


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
