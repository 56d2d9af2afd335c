"""Who comes to a page. Every page is tested with each of them.

The owner of the server sees all runs; a member launched the run in question, for her team, which she owns; an
editor and a viewer are in that team; an outsider has an account and another team; nobody has no account; the holder
of a share link has no account but the link.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.test import Client

from dashboard.accounts import teams
from dashboard.accounts.models import Membership, Team
from dashboard.roles import Role
from dashboard.runs import links, services
from dashboard.runs.models import Run, ShareLink
from trainer.spec import JobSpec

PASSWORD = "four ranks in step"
EVERYBODY = ("owner", "member", "editor", "viewer", "outsider", "nobody", "link_holder")
THOSE_WHO_SEE = ("owner", "member", "editor", "viewer", "link_holder")  # the run, by its own address or the link's


@dataclass
class People:
    run: Run  # the member's, for her team
    team: Team
    other_team: Team  # the outsider's
    link: ShareLink
    token: str

    def user(self, who: str) -> User | None:
        return User.objects.filter(username=who).first()

    def client(self, who: str, **kwargs: bool) -> Client:
        """A browser in which `who` is logged in. Nobody and the link holder have no account."""
        client = Client(**kwargs)
        user = self.user(who)
        if user is not None:
            client.force_login(user)
        return client


def gather(spec: JobSpec) -> People:
    """All of them in the database, with a run and a link to it."""
    User.objects.create_superuser("owner", password=PASSWORD)
    member, editor, viewer, outsider = (
        User.objects.create_user(name, password=PASSWORD) for name in ("member", "editor", "viewer", "outsider")
    )
    team, other_team = teams.make("crew", member), teams.make("rivals", outsider)
    Membership.objects.create(team=team, user=editor, role=Role.EDITOR)
    Membership.objects.create(team=team, user=viewer, role=Role.VIEWER)
    run = services.launch(spec, member, team=team)
    link, token = links.share(run, member)
    return People(run, team, other_team, link, token)
