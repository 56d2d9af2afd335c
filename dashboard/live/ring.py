"""The latest entries of a run's stream, kept so that viewers at its head cost Redis nothing."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from dashboard.live.cursor import StreamId

_KEPT_SHARE = 0.875  # what is kept when the ring is full: dropping in slabs costs less than one by one


@dataclass(frozen=True)
class Entry:
    """One entry of the stream: a frame's bytes, or an event's JSON."""

    id: StreamId
    field: bytes
    data: bytes


def head_of(entries: list[Entry], most_bytes: int) -> list[Entry]:
    """The first entries that fit in `most_bytes`; at least one if there is any."""
    total = 0
    for count, entry in enumerate(entries):
        total += len(entry.data)
        if total > most_bytes and count:
            return entries[:count]
    return entries


class Ring:
    """Holds every entry of the stream after `floor`, up to a bound in bytes."""

    def __init__(self, most_bytes: int, floor: StreamId):
        self.most_bytes = most_bytes
        self.bytes = 0
        self.floor = floor
        self._entries: list[Entry] = []
        self._ids: list[StreamId] = []

    @property
    def last(self) -> StreamId:
        return self._ids[-1] if self._ids else self.floor

    def extend(self, entries: list[Entry]) -> None:
        """Add what directly follows `last`."""
        self._entries += entries
        self._ids += [entry.id for entry in entries]
        self.bytes += sum(len(entry.data) for entry in entries)
        if self.bytes > self.most_bytes:
            self._drop_oldest()

    def restart(self, floor: StreamId) -> None:
        """Forget all: what follows is known from `floor` on."""
        self._entries, self._ids, self.bytes, self.floor = [], [], 0, floor

    def after(self, id: StreamId, most_bytes: int) -> list[Entry] | None:
        """The entries after `id`, or None when the ring does not hold all of them."""
        if id < self.floor:
            return None
        at = bisect_right(self._ids, id)
        return head_of(self._entries[at : at + 4096], most_bytes)

    def _drop_oldest(self) -> None:
        kept = self.most_bytes * _KEPT_SHARE
        count = 0
        while self.bytes > kept and count < len(self._entries):
            self.bytes -= len(self._entries[count].data)
            count += 1
        self.floor = self._ids[count - 1]
        del self._entries[:count], self._ids[:count]
