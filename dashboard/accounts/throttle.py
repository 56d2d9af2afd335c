"""Guessing a password gets slower with every miss, and nobody is locked out for long.

Misses count by name and address together, so a stranger elsewhere cannot slow down the owner, and
by address alone, so that trying many names does not help. The wait runs from the last miss that was
looked at; attempts during the wait are refused unseen and make it no longer.
"""

from __future__ import annotations

from datetime import timedelta
from math import ceil

from django.utils import timezone

from dashboard.accounts.models import FailedLogin

REMEMBERED = timedelta(minutes=15)
FREE_MISSES = 4
FREE_MISSES_OF_ADDRESS = 30
LONGEST_WAIT_SECONDS = 60


def wait_seconds(name: str, address: str) -> int:
    """How long this visitor has to wait before her next attempt is looked at; 0 for not at all."""
    now = timezone.now()
    misses = list(
        FailedLogin.objects.filter(address=address, at__gt=now - REMEMBERED).order_by("-at").values_list("name", "at")[:100]
    )
    of_name = [at for missed, at in misses if missed == _folded(name)]
    ready = [
        found[0] + timedelta(seconds=min(2 ** (len(found) - free), LONGEST_WAIT_SECONDS))
        for found, free in ((of_name, FREE_MISSES), ([at for _, at in misses], FREE_MISSES_OF_ADDRESS))
        if len(found) > free
    ]
    return max((ceil((until - now).total_seconds()) for until in ready if until > now), default=0)


def missed(name: str, address: str) -> None:
    now = timezone.now()
    FailedLogin.objects.filter(at__lt=now - REMEMBERED).delete()
    FailedLogin.objects.create(name=_folded(name), address=address[:45], at=now)


def got_in(name: str, address: str) -> None:
    FailedLogin.objects.filter(name=_folded(name), address=address).delete()


def _folded(name: str) -> str:
    return name.strip().casefold()[:150]
