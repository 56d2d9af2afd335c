"""The way in while nobody has an account: a one-time link, printed where the server starts."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model

from dashboard.conf import kept_secret


def token_file() -> Path:
    path: Path = settings.CONF.home / "first-visit"
    return path


def is_over() -> bool:
    return get_user_model().objects.exists()


def token() -> str | None:
    """The link's token, made if there is none; None once anybody has an account."""
    return None if is_over() else kept_secret(token_file())


def is_open_to(given: str) -> bool:
    """Whether `given` is the token and still opens the door. Never makes a token."""
    if is_over():
        return False
    try:
        kept = token_file().read_text().strip()
    except OSError:
        return False
    return bool(kept) and hmac.compare_digest(given.encode(), kept.encode())


@contextmanager
def claimed() -> Iterator[bool]:
    """Whether this caller, of all that hold the token at once, may make the owner's account.

    A rename is atomic, so only one can take the file. It comes back if making the account fails.
    """
    taken = token_file().with_suffix(".claimed")
    try:
        token_file().rename(taken)
    except FileNotFoundError:
        yield False
        return
    try:
        yield True
    except BaseException:
        taken.rename(token_file())
        raise
    taken.unlink()
