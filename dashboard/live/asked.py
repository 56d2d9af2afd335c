"""What is asked of a run's store by an address: its fields, and for how long a browser may keep the answer."""

from __future__ import annotations

import re
from typing import Any

from django.http import HttpResponse
from django.utils.cache import patch_vary_headers

from trainer.trace.store import StoreReader

_NUMBER = re.compile(r"-?\d{1,16}\Z", re.ASCII)


class NotUnderstood(ValueError):
    def __init__(self, field: str, given: str, would_do: str):
        super().__init__(f"{field}={given}: {would_do}")
        self.answer = {"field": field, "given": given, "message": would_do}


def number(given: Any, field: str, default: int, least: int, most: int) -> int:
    """NotUnderstood for what is no whole number between `least` and `most`."""
    text = given.get(field)
    if text is None:
        return default
    if not _NUMBER.match(text) or not least <= int(text) <= most:
        raise NotUnderstood(field, text, f"a whole number from {least} to {most} would do")
    return int(text)


def let_keep(response: HttpResponse, reader: StoreReader) -> HttpResponse:
    """What is sealed for good never changes; before that browsers ask whether it did."""
    response["Cache-Control"] = "private, max-age=31536000, immutable" if reader.manifest.complete else "private, no-cache"
    patch_vary_headers(response, ["Cookie"])
    return response
