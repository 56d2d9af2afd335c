"""What a viewer's browser and the server say to each other over the websocket.

    browser → server   {"type": "pull", "after": cursor or null}
                       {"type": "lead", "view": what stands behind the # of its address, or null to lead no more}
    server → browser   StateMessage, RedisMessage, PeopleMessage and LeadMessage as text, batches as binary:
                       "LKB1", u32 size of the meta, the meta as JSON padded by spaces to 8, whole frames

A cursor is opaque to the browser: it hands back what the last batch gave it. The next pull is also
the acknowledgement of the batch before, so a slow page holds one batch and no more.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from dashboard.live.cursor import Cursor, parse
from dashboard.runs.shown import can_be_shown

BATCH_MAGIC = b"LKB1"
_HEAD = struct.Struct("<4sI")
_PULL_KEYS = {"type", "after"}
_LEAD_KEYS = {"type", "view"}

MOST_CLIENT_BYTES = 4096  # of one message from a browser

# Why the server closes: 4404 says "there is nothing here for you", and a page does not try again.
CLOSE_GONE = 4404
CLOSE_MALFORMED = 4400
CLOSE_TOO_LONG = 4413
CLOSE_IMPATIENT = 4429  # a second pull before the first was answered


class StateMessage(TypedDict):
    type: Literal["state"]
    run: dict[str, Any]


class RedisMessage(TypedDict):
    """Whether the live stream can be read at the moment."""

    type: Literal["redis"]
    away: bool


class PeopleMessage(TypedDict):
    """Who watches. Guests are told how many, and no names."""

    type: Literal["people"]
    people: list[dict[str, Any]]  # as Presence.people
    count: int
    me: str  # the receiver's key


class LeadMessage(TypedDict):
    """Whose view is shown, and which it is; null when nobody's."""

    type: Literal["lead"]
    lead: dict[str, str] | None


class BatchMeta(TypedDict):
    cursor: str
    events: list[dict[str, Any]]
    complete: bool
    frames: int
    merged: bool  # each frame holds what its rank sent in several, under the last one's sequence number


class MalformedMessage(ValueError):
    """The browser sent something that has no meaning."""


@dataclass
class Batch:
    """What follows a cursor. `complete`: the run is sealed and nothing comes after `cursor`."""

    cursor: Cursor
    frames: Sequence[bytes] = ()
    events: list[dict[str, Any]] = field(default_factory=list)
    complete: bool = False
    merged: bool = False

    @property
    def is_empty(self) -> bool:
        return not self.frames and not self.events and not self.complete

    def encode(self) -> bytes:
        meta: BatchMeta = {
            "cursor": str(self.cursor), "events": self.events, "complete": self.complete, "frames": len(self.frames),
            "merged": self.merged,
        }
        text = json.dumps(meta, ensure_ascii=False, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        return b"".join([_HEAD.pack(BATCH_MAGIC, len(text)), text, *self.frames])


def decode_batch(data: bytes) -> tuple[BatchMeta, bytes]:
    """The meta of a batch, and the bytes of its frames."""
    magic, meta_bytes = _HEAD.unpack_from(data)
    if magic != BATCH_MAGIC:
        raise ValueError(f"a batch starts with {BATCH_MAGIC!r}, not {magic!r}")
    body = _HEAD.size + meta_bytes
    return json.loads(data[_HEAD.size : body]), data[body:]


@dataclass(frozen=True)
class ShownView:
    """A browser shows its view to the others, or no longer does."""

    view: str | None


def parse_message(text: str) -> Cursor | ShownView:
    """A pull's cursor, or a view that is shown. MalformedMessage when `text` is anything else."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        raise MalformedMessage("not JSON") from None
    if not isinstance(message, dict):
        raise MalformedMessage("not a message")
    if message.get("type") == "lead" and set(message) == _LEAD_KEYS:
        return _shown_view(message["view"])
    if message.get("type") != "pull" or not set(message) <= _PULL_KEYS:
        raise MalformedMessage("neither a pull nor a view")
    after = message.get("after")
    if after is not None and not isinstance(after, str):
        raise MalformedMessage("a cursor is text")
    try:
        return parse(after)
    except ValueError as error:
        raise MalformedMessage(str(error)) from None


def _shown_view(view: Any) -> ShownView:
    if view is not None and not (isinstance(view, str) and can_be_shown(view)):
        raise MalformedMessage("a view is what stands behind the # of an address")
    return ShownView(view)
