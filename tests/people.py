"""Who comes to a page. Every page is tested with each of them.

The owner of the server sees all runs; a member launched the run in question; an outsider has an account
and nothing to do with it; nobody has no account; the holder of a share link has no account but the link.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.test import Client

from dashboard.runs import services
from dashboard.runs.models import Run, ShareLink
from trainer.spec import JobSpec

PASSWORD = "four ranks in step"
EVERYBODY = ("owner", "member", "outsider", "nobody", "link_holder")


@dataclass
class People:
    run: Run  # the member's
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
    member = User.objects.create_user("member", password=PASSWORD)
    User.objects.create_user("outsider", password=PASSWORD)
    run = services.launch(spec, member)
    link, token = services.share(run, member)
    return People(run, link, token)
