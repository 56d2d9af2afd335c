"""From sealed segments to the stream and back: where what follows a cursor is to be had."""

from dataclasses import replace

import pytest

from dashboard.live.cursor import START, STREAM_START, AfterEntry, AfterSealed, parse
from dashboard.live.handover import Next, Sealed, Stream, after_entry
from dashboard.live.ring import Entry
from trainer.trace.stream import FRAME


def entries(*ids):
    return tuple(Entry((id, 0), FRAME, b"x") for id in ids)


def stream(*ids, after=0, last=None):
    """A stream that holds `ids`, seen from `after`."""
    return Stream(
        first=(ids[0], 0) if ids else None, last=(last or ids[-1], 0), following=entries(*(id for id in ids if id > after))
    )


NOTHING_SEALED = Sealed()
SEALED_TO_20 = Sealed(segments_through=((10, 0), (20, 0)), through=(20, 0))


def test_the_stream_answers_what_it_still_holds():
    assert after_entry((2, 0), stream(1, 2, 3, 4, after=2), NOTHING_SEALED) == Next(AfterEntry((4, 0)), entries(3, 4))


def test_at_the_head_a_viewer_waits():
    assert after_entry((4, 0), stream(3, 4, after=4), NOTHING_SEALED) == Next(AfterEntry((4, 0)))


def test_a_head_whose_entries_were_all_trimmed_is_still_the_head():
    assert after_entry((20, 0), Stream(None, (20, 0)), SEALED_TO_20) == Next(AfterEntry((20, 0)))


def test_before_anything_is_sealed_the_stream_is_read_from_its_start():
    assert after_entry(STREAM_START, stream(5, 6), NOTHING_SEALED) == Next(AfterEntry((6, 0)), entries(5, 6))


def test_what_was_trimmed_past_the_cursor_comes_from_its_segment():
    assert after_entry((12, 0), stream(21, 22, after=12), SEALED_TO_20) == Next(AfterSealed(1))


def test_a_cursor_at_the_end_of_a_segment_skips_that_segment():
    assert after_entry((10, 0), stream(21, 22, after=10), SEALED_TO_20) == Next(AfterSealed(1))


def test_after_the_sealed_part_the_stream_goes_on_though_it_was_trimmed():
    assert after_entry((20, 0), stream(21, 22, after=20), SEALED_TO_20) == Next(AfterEntry((22, 0)), entries(21, 22))


def test_what_is_sealed_but_not_yet_trimmed_comes_from_the_stream():
    seen = stream(9, 12, 15, 20, 21, after=12)
    assert after_entry((12, 0), seen, SEALED_TO_20) == Next(AfterEntry((21, 0)), entries(15, 20, 21))


def test_a_sealed_run_is_complete_where_its_segments_end():
    sealed = replace(SEALED_TO_20, is_complete=True)
    assert after_entry((20, 0), Stream(), sealed) == Next(AfterEntry((20, 0)), complete=True)
    assert after_entry((12, 0), Stream(), sealed) == Next(AfterSealed(1))


def test_a_lost_stream_leads_back_to_segments_and_then_to_waiting():
    assert after_entry((12, 0), Stream(), SEALED_TO_20) == Next(AfterSealed(1))
    assert after_entry((20, 0), Stream(), SEALED_TO_20) == Next(AfterEntry((20, 0)))


def test_a_cursor_of_what_redis_forgot_starts_over():
    assert after_entry((30, 0), Stream(), SEALED_TO_20) == Next(START)


def test_a_stream_that_began_anew_with_lower_ids_is_read_from_its_start():
    reborn = stream(3, 4, after=20)
    assert after_entry((20, 0), reborn, SEALED_TO_20) == Next(AfterEntry(STREAM_START))
    assert after_entry(STREAM_START, stream(3, 4), SEALED_TO_20) == Next(AfterEntry((4, 0)), entries(3, 4))


def test_nothing_leads_in_a_circle():
    """From every cursor, a few steps reach data, an end or a wait."""
    streams = [Stream(), Stream(None, (20, 0)), Stream(None, (5, 0)), stream(3, 4), stream(21, 22), stream(15, 20, 25)]
    stores = [NOTHING_SEALED, SEALED_TO_20, Sealed(((10, 0),), (20, 0)), Sealed(((20, 0),), (20, 0), is_complete=True)]
    for seen in streams:
        for sealed in stores:
            for start in range(40):
                cursor, visited = AfterEntry((start, 0)), []
                while cursor not in visited:
                    visited.append(cursor)
                    if isinstance(cursor, AfterSealed):
                        cursor = AfterEntry(sealed.through)  # a viewer that got all the segments there are
                        continue
                    following = tuple(entry for entry in seen.following if entry.id > cursor.id)
                    found = after_entry(cursor.id, Stream(seen.first, seen.last, following), sealed)
                    if found.entries or found.complete or found.cursor == cursor:
                        break
                    cursor = found.cursor
                else:
                    pytest.fail(f"{visited} repeats over {seen} and {sealed}")


@pytest.mark.parametrize("cursor", [START, AfterSealed(3, 5120), AfterEntry((1700000000000, 7))])
def test_a_cursor_comes_back_as_it_went(cursor):
    assert parse(str(cursor)) == cursor


@pytest.mark.parametrize(
    "text", ["", "s:", "s:1", "s:-1:0", "r:5", "r:1-2-3", "x:1-2", "s:1:2\n", "r:" + "9" * 25 + "-0", "s:１:0"]
)
def test_what_no_server_gave_is_no_cursor(text):
    with pytest.raises(ValueError):
        parse(text)
