"""What people may do in a team, and to a run that is the team's. One scale for accounts, runs, pages, API and sockets."""

from __future__ import annotations

from django.db import models


class Role(models.TextChoices):
    """Each may do what those before it may."""

    VIEWER = "viewer"
    EDITOR = "editor"
    OWNER = "owner"

    def allows(self, needed: Role) -> bool:
        order = list(Role)
        return order.index(self) >= order.index(needed)

    @classmethod
    def from_on(cls, needed: Role) -> list[Role]:
        """Those that may do what `needed` may."""
        return [role for role in cls if role.allows(needed)]

    @property
    def may(self) -> str:
        return MAY[self]


MAY = {
    Role.VIEWER: "sees the team's runs and comments on them",
    Role.EDITOR: "also launches for the team, stops, names, tags and shares its runs",
    Role.OWNER: "also decides who is in the team, deletes its runs and sets its webhooks",
}
