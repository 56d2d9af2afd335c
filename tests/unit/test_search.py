"""Search in a stored run: exact whatever is read at once, bounded in what it reads, and honest about what it cannot read."""

import random
import struct
from dataclasses import replace

import numpy as np
import pytest

from tests.people import EVERYBODY, THOSE_WHO_SEE, gather
from tests.unit.frames import all_spans, frame_of, shuffled
from trainer.folder import run_folder, store_folder
from trainer.presets import PRESETS
from trainer.trace import search as searching
from trainer.trace import segments
from trainer.trace.kinds import LANE_OF, Kind
from trainer.trace.search import matches, search
from trainer.trace.span_query import LONGEST, BadQuery, parse
from trainer.trace.store import StoreReader, StoreWriter


def stored(folder, seed=1, ranks=4, count=60):
    """A store of many small segments, and (start_ns, lane, end_ns, kind) of all spans."""
    writer = StoreWriter(folder)
    frames = shuffled(random.Random(seed), ranks, count)
    for at, frame in enumerate(frames):
        writer.add(frame, f"1-{at}")
        if at % 8 == 7:
            writer.seal()
    writer.seal(complete=True)
    return StoreReader(folder), [
        (start, rank * 4 + LANE_OF[Kind(kind)], start + duration, kind)
        for rank, start, duration, *_, kind, _, _, _ in all_spans(frames)
    ]


def answers(reader, query):
    """What every answer says, from the first segment to the last."""
    after = 0
    while True:
        found = search(reader, query, after)
        yield found
        if found.through == len(reader.segments):
            return
        assert found.through > after
        after = found.through


def test_what_is_found_an_answer_at_a_time_is_all_there_is(tmp_path):
    reader, spans = stored(tmp_path)
    query = parse("kind:forward")
    wanted = sorted((start, lane) for start, lane, _, kind in spans if kind == Kind.FORWARD)
    told = [row for found in answers(reader, query) for row in found.segments]
    assert len(reader.segments) > 2 * searching.MOST_READ and sum(count for _, count, _, _ in told) == len(wanted) > 100
    walked = []
    for number, count, first, last in told:
        starts, lanes = matches(reader, query, number)
        pairs = list(zip(starts.tolist(), lanes.tolist(), strict=True))
        assert pairs == sorted(pairs) and len(pairs) == count and (starts[0], starts[-1]) == (first, last)
        walked += pairs
    assert sorted(walked) == wanted


def test_every_match_lies_where_it_is_lit_and_nothing_else_is_lit(tmp_path):
    reader, spans = stored(tmp_path)
    found_spans = [(lane, start, max(end, start + 1)) for start, lane, end, kind in spans if kind == Kind.ALL_GATHER]
    lit = []
    for found in answers(reader, parse("kind:all_gather")):
        lit += [(lane, first * found.cell_ns, (first + cells) * found.cell_ns) for lane, first, cells in found.lit]
    assert len(found_spans) > 50
    for lane, start, end in found_spans:
        assert any(one == lane and low <= start and end <= high for one, low, high in lit)
    cell_ns = search(reader, parse("F0"), 0).cell_ns
    for lane, low, high in lit:
        for cell in range(int(low), int(high), cell_ns):
            assert any(one == lane and start < cell + cell_ns and end > cell for one, start, end in found_spans)


def test_an_answer_reads_no_more_than_a_few_segments_and_none_of_other_steps(tmp_path, monkeypatch):
    writer = StoreWriter(tmp_path)
    for step in range(100):
        rows = [(Kind.FORWARD, step * 100, step * 100 + 50, step, 0, 0, -1, -1, -1, "F0", "")]
        writer.add(frame_of(0, step + 1, rows, step), f"1-{step}")
        writer.seal()
    reader, read = StoreReader(tmp_path), []
    monkeypatch.setattr(segments, "read", lambda *args, read_it=segments.read: read.append(args[1].number) or read_it(*args))
    assert search(reader, parse("F0"), 20).through == 20 + searching.MOST_READ
    assert read == list(range(21, 21 + searching.MOST_READ))
    read.clear()
    found = search(reader, parse("step:70-71,93"), 0)
    assert (found.through, read, [number for number, *_ in found.segments]) == (100, [71, 72, 94], [71, 72, 94])
    monkeypatch.setattr(searching, "MOST_PASSED", 10)
    assert search(reader, parse("step:70"), 0).through == 10


def test_a_segment_that_cannot_be_read_is_counted_and_the_rest_is_searched(tmp_path):
    reader, _ = stored(tmp_path, count=12)
    whole = search(reader, parse("kind:forward"), 0)
    segments.segment_file(tmp_path, 2).write_bytes(b"no longer what was sealed")
    found = search(reader, parse("kind:forward"), 0)
    assert found.unread == [2]
    assert found.segments == [row for row in whole.segments if row[0] != 2]
    with pytest.raises(segments.BrokenSegment, match=r"000002\.spans\.parquet"):
        matches(reader, parse("kind:forward"), 2)


@pytest.mark.parametrize("text", ["", "   ", "F0 " * LONGEST])
def test_a_query_of_nothing_or_of_too_much_is_refused(text):
    with pytest.raises(BadQuery, match=f"at most {LONGEST} letters"):
        parse(text)


@pytest.fixture
def people(db, settings, tmp_path):
    settings.CONF = replace(settings.CONF, redis_url="", home=tmp_path)
    return gather(PRESETS["pipeline-1f1b"].spec)


def ask(people, who="member", **fields):
    base = f"/s/{people.token}" if who == "link_holder" else f"/runs/{people.run.id}"
    return people.client(who).get(f"{base}/search/", fields)


@pytest.mark.parametrize("who", EVERYBODY)
def test_who_may_search_a_run(people, who):
    answer = ask(people, who, q="F0")
    if who in THOSE_WHO_SEE:
        assert answer.json() == {
            "through": 0, "cell_ns": 1, "segments": [], "lit": [], "unread": [], "last": 0, "complete": False,
        }
    else:
        assert answer.status_code == (302 if who == "nobody" else 404)


def test_answers_are_kept_once_the_run_is_sealed_for_good_and_can_be_read(people, tmp_path):
    folder = store_folder(run_folder(tmp_path, people.run.id))
    reader, _ = stored(folder, count=6)
    answer = ask(people, q="kind:forward")
    assert answer.json()["complete"] and "immutable" in answer["Cache-Control"]
    listed = ask(people, q="kind:forward", segment=1)
    assert "immutable" in listed["Cache-Control"]
    count, padding = struct.unpack_from("<II", listed.content)
    starts, lanes = matches(reader, parse("kind:forward"), 1)
    assert (count, padding) == (len(starts), 0)
    assert np.frombuffer(listed.content, "<f8", count, 8).tolist() == starts.tolist()
    assert np.frombuffer(listed.content, "<u4", count, 8 + 8 * count).tolist() == lanes.tolist()
    segments.segment_file(folder, 1).unlink()
    assert "Cache-Control" not in ask(people, q="kind:forward")


@pytest.mark.parametrize(("fields", "field", "message"), [
    ({"q": "dur:soon"}, "q", 'dur: takes a length such as >5ms or 2ms-4ms; "soon" is none'),
    ({}, "q", "0 letters; something to look for, of at most 200 letters, would do"),
    ({"q": "F0", "after": "-1"}, "after", "a whole number from 0 to 2147483648 would do"),
    ({"q": "F0", "segment": "9"}, "segment", "one of the 0 that are sealed would do"),
    ({"q": "F0", "segment": "0"}, "segment", "a whole number from 1 to 2147483648 would do"),
])
def test_what_is_not_understood_is_said(people, fields, field, message):
    answer = ask(people, **fields)
    assert answer.status_code == 400
    assert answer.json()["error"] == message and answer.json()["errors"][0]["field"] == field
