"""Where what follows a viewer's cursor is to be had: from sealed segments, or from the stream.

The recorder seals what the stream holds, and only then trims it. So whoever reads the stream first
and the sealed segments' manifest after it finds everything in one of the two.
"""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.live.cursor import START, STREAM_START, AfterEntry, AfterSealed, Cursor, StreamId
from dashboard.live.ring import Entry


@dataclass(frozen=True)
class Stream:
    """The run's stream, looked at from a viewer's cursor; `first` and `last` are None when it does not exist.

    `last` is the id it gave last, also when that entry was trimmed.
    """

    first: StreamId | None = None
    last: StreamId | None = None
    following: tuple[Entry, ...] = ()  # from the cursor on, as many as fit a batch


@dataclass(frozen=True)
class Sealed:
    """What is in segments: for each the id of the last entry it holds, and up to where all entries are dealt with.

    The ids grow, unless Redis lost its memory and the clock was set back.
    """

    segments_through: tuple[StreamId, ...] = ()
    through: StreamId = STREAM_START
    is_complete: bool = False  # nothing will be added

    def before(self, id: StreamId) -> AfterSealed:
        """As far as one may skip without missing what follows the entry `id`."""
        later = (index for index, through in enumerate(self.segments_through) if through > id)
        return AfterSealed(next(later, len(self.segments_through)))


@dataclass(frozen=True)
class Next:
    """What a viewer gets: entries of the stream, another cursor to go on from, or word that it has all."""

    cursor: Cursor
    entries: tuple[Entry, ...] = ()
    complete: bool = False


def after_entry(id: StreamId, stream: Stream, sealed: Sealed) -> Next:
    """What follows the stream's entry `id`. The cursor comes back unchanged, without more, when one has to wait."""
    if sealed.is_complete:
        return Next(AfterEntry(id), complete=True) if id >= sealed.through else Next(sealed.before(id))
    if stream.last is not None and id <= stream.last:
        was_trimmed = id < stream.last and (stream.first is None or stream.first > id)
        if was_trimmed and id < sealed.through <= stream.last:
            return Next(sealed.before(id))
        return Next(AfterEntry(stream.following[-1].id if stream.following else id), stream.following)
    # The stream is not there, or it began anew with lower ids: Redis lost its memory.
    if id < sealed.through:
        return Next(sealed.before(id))
    if id > sealed.through:
        return Next(START)
    return Next(AfterEntry(id if stream.last is None else STREAM_START))
