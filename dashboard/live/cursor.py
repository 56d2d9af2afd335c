"""How far a viewer is: within what is sealed, or up to an entry of the run's stream."""

from __future__ import annotations

import re
from dataclasses import dataclass

StreamId = tuple[int, int]  # milliseconds and a counter, ordered as Redis orders its entries

STREAM_START: StreamId = (0, 0)
_SEALED = re.compile(r"s:(\d{1,9}):(\d{1,15})\Z", re.ASCII)
_STREAM = re.compile(r"r:(\d{1,19})-(\d{1,19})\Z", re.ASCII)
_ID = re.compile(r"(\d{1,20})-(\d{1,20})\Z", re.ASCII)


@dataclass(frozen=True)
class AfterSealed:
    """All segments up to number `segment` (they count from 1) and `steps_bytes` of the steps' journal were sent."""

    segment: int = 0
    steps_bytes: int = 0

    def __str__(self) -> str:
        return f"s:{self.segment}:{self.steps_bytes}"


@dataclass(frozen=True)
class AfterEntry:
    """Everything up to the stream's entry `id` was sent."""

    id: StreamId

    def __str__(self) -> str:
        return f"r:{id_text(self.id)}"


Cursor = AfterSealed | AfterEntry
START = AfterSealed()


def parse(text: str | None) -> Cursor:
    """The cursor that `str` wrote; None is the start. ValueError if it is no cursor."""
    if text is None:
        return START
    if found := _SEALED.match(text):
        return AfterSealed(int(found[1]), int(found[2]))
    if found := _STREAM.match(text):
        return AfterEntry((int(found[1]), int(found[2])))
    raise ValueError("no such cursor")


def id_text(id: StreamId) -> str:
    return f"{id[0]}-{id[1]}"


def id_of(text: bytes | str) -> StreamId:
    """A stream entry's id as Redis writes it."""
    found = _ID.match(text.decode() if isinstance(text, bytes) else text)
    if not found:
        raise ValueError(f"{text!r} is not the id of a stream's entry")
    return int(found[1]), int(found[2])
