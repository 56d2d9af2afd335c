"""Lists of runs that somebody comes back to, by their names."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from django.http import Http404

from dashboard.runs.models import SavedView
from dashboard.runs.rows import Asked
from trainer.complaints import FieldError, SpecError

MOST_VIEWS = 30  # of one user
LONGEST_ADDRESS = 2000


def save(user: Any, name: str, address: str) -> SavedView:
    """The list at `address`, what stands behind its question mark; a name that is there already means this one from now on."""
    name = " ".join(name.replace("\0", " ").split())
    if not 1 <= len(name) <= 40:
        raise SpecError([FieldError("name", name[:80], "a view has a name of up to 40 characters: slow ones, my zero bubbles")])
    if user.saved_views.exclude(name=name).count() >= MOST_VIEWS:
        raise SpecError([FieldError("", name, f"{MOST_VIEWS} views are as many as an account may have; forget one first")])
    return SavedView.objects.update_or_create(user=user, name=name, defaults={"address": written_anew(address, user)})[0]


def forget(user: Any, view_id: int) -> None:
    if not user.saved_views.filter(pk=view_id).delete()[0]:
        raise Http404("There is no such view.")


def written_anew(address: str, user: Any) -> str:
    """What the address says of a list and nothing else, so that it leads nowhere else."""
    return Asked.of(dict(parse_qsl(address[:LONGEST_ADDRESS])), user).address()
