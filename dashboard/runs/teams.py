"""Whose a run is: private to its owner, or a team's."""

from __future__ import annotations

from typing import Any

from dashboard.roles import Role
from trainer.complaints import FieldError, SpecError


def teams_of(user: Any) -> list[Any]:
    """The teams that `user` may launch for and give runs to."""
    mine = user.memberships.filter(role__in=Role.from_on(Role.EDITOR)).select_related("team").order_by("team__name")
    return [one.team for one in mine]


def team_for(user: Any, team_id: int | None) -> Any:
    """That team, if `user` may launch for it; else None, and the run is private."""
    return next((team for team in teams_of(user) if team.pk == team_id), None)


def asked_team(user: Any, given: str | int | None) -> Any:
    """The team that a form or a program names by its number, None for "" and None. SpecError when it is none of hers."""
    if given in ("", None):
        return None
    teams = teams_of(user)
    found = next((team for team in teams if str(team.pk) == str(given)), None)
    if found is None:
        would_do = ", ".join(f"{team.pk} ({team.name})" for team in teams)
        why = f"of your teams in which you are editor or owner, {would_do} would do" if teams else "you are editor in no team"
        raise SpecError([FieldError("team", given, why)])
    return found
