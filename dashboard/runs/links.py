"""Share links: named ways to a run, or to one view of it, for whoever holds them; counted, with an end, taken back."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import F, QuerySet
from django.utils import timezone

from dashboard.runs import door
from dashboard.runs.access import digest, open_links
from dashboard.runs.models import Run, ShareLink
from dashboard.runs.shown import can_be_shown
from trainer.complaints import FieldError, SpecError

MOST_LINKS = 50  # of one run at a time
LONGEST_DAYS = 365
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Wish:
    """What a link is to be. `view` is what stands behind the # of the page that it opens."""

    name: str = ""
    days: int | None = None  # None: until it is taken back
    view: str = ""
    with_comments: bool = False

    def complaints(self) -> list[FieldError]:
        errors = []
        if len(self.name) > 60 or _CONTROL.search(self.name):
            errors.append(FieldError("name", self.name[:80], "a line of at most 60 characters would do"))
        if self.days is not None and not 1 <= self.days <= LONGEST_DAYS:
            errors.append(FieldError("days", self.days, f"1 to {LONGEST_DAYS} would do, or nothing for no end"))
        if not can_be_shown(self.view):
            errors.append(FieldError("view", self.view[:80], "what stands behind the # of a run's address would do"))
        return errors


def links_of(run: Run) -> QuerySet[ShareLink]:
    """Those that work."""
    return open_links().filter(run=run).select_related("created_by")


def share(run: Run, by: Any, wish: Wish | None = None) -> tuple[ShareLink, str]:
    """A new link and its token of 192 bits, which is shown once and kept nowhere. SpecError when it cannot be as wished."""
    wish = wish or Wish()
    errors = wish.complaints()
    if links_of(run).count() >= MOST_LINKS:
        errors.append(FieldError("", run.pk, f"{MOST_LINKS} links are as many as a run may have; take one back first"))
    if errors:
        raise SpecError(errors)
    token = secrets.token_urlsafe(24)
    ends_at = None if wish.days is None else timezone.now() + timedelta(days=wish.days)
    link = ShareLink.objects.create(
        run=run, token_digest=digest(token), created_by=by, name=wish.name.strip(), view=wish.view,
        with_comments=wish.with_comments, ends_at=ends_at,
    )
    return link, token


def note_use(link: ShareLink) -> None:
    """Its page was opened."""
    ShareLink.objects.filter(pk=link.pk).update(uses=F("uses") + 1, last_used_at=timezone.now())


def take_back(link: ShareLink) -> None:
    """It opens nothing any more, and the pages that it opened are shown out."""
    link.taken_back_at = timezone.now()
    link.save(update_fields=["taken_back_at"])
    door.tell(link.run_id)
