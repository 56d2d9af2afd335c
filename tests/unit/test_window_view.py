"""The window endpoint: who may ask, what comes, how long browsers may keep it, and what it says to nonsense."""

import random
from dataclasses import replace

import numpy as np
import pytest

from dashboard.live import window_message
from dashboard.live.cursor import AfterSealed, parse
from dashboard.live.history import StoredHistory
from tests.people import EVERYBODY, THOSE_WHO_SEE, gather
from tests.unit.frames import all_spans, frame_of, shuffled
from trainer.folder import run_folder, store_folder
from trainer.presets import PRESETS
from trainer.trace import windows
from trainer.trace.frame import HEADER, decode
from trainer.trace.kinds import Kind
from trainer.trace.store import StoreReader, StoreWriter


@pytest.fixture
def people(db, settings, tmp_path):
    settings.CONF = replace(settings.CONF, redis_url="", home=tmp_path)
    return gather(PRESETS["pipeline-1f1b"].spec)


@pytest.fixture
def writer(people, tmp_path):
    return StoreWriter(store_folder(run_folder(tmp_path, people.run.id)))


def address(people, who="member", query=""):
    return (f"/s/{people.token}" if who == "link_holder" else f"/runs/{people.run.id}") + f"/window/?{query}"


def head_of(answer):
    names = ("magic", "form", "lanes", "cells", "from_ns", "cell_ns", "segments", "frames", "settled_ns")
    return dict(zip(names, window_message.HEAD.unpack_from(answer.content), strict=True))


@pytest.mark.parametrize("who", EVERYBODY)
def test_who_may_see_a_window(people, writer, who):
    writer.seal(complete=True)
    answer = people.client(who).get(address(people, who))
    if who in THOSE_WHO_SEE:
        assert answer.status_code == 200 and head_of(answer)["magic"] == b"LKW1"
    else:
        assert answer.status_code == (302 if who == "nobody" else 404)


def frames_in(data):
    at, frames = 0, []
    while at < len(data):
        size = int(np.frombuffer(data, HEADER, 1, at)[0]["frame_bytes"])
        frames.append(decode(data[at : at + size]))
        at += size
    return frames


def test_a_window_of_few_spans_holds_them_as_frames(people, writer):
    recorded = shuffled(random.Random(1))
    for frame in recorded:
        writer.add(frame, "1-0")
    writer.seal()
    answer = people.client("member").get(address(people))
    assert head_of(answer)["form"] == window_message.SPANS
    assert all_spans(frames_in(answer.content[window_message.HEAD.size :])) == all_spans(recorded)
    assert head_of(answer)["frames"] == 4


def test_a_window_of_many_spans_holds_cells_lane_by_lane(people, writer, monkeypatch):
    monkeypatch.setattr(windows, "FEW_SPANS", 10)
    for frame in shuffled(random.Random(2)):
        writer.add(frame, "1-0")
    writer.seal()
    answer = people.client("member").get(address(people, query="pixels=50&lanes=2-9"))
    head = head_of(answer)
    reader = StoreReader(writer.folder)
    cells = windows.cells(reader, windows.window_of(reader, reader.manifest.start_ns, reader.manifest.end_ns, 50, 2, 10))
    assert (head["form"], head["lanes"], head["cells"]) == (window_message.CELLS, *cells.kind.shape)
    assert (head["from_ns"], head["cell_ns"]) == (cells.window.from_ns, 1 << cells.window.bits)
    assert head["settled_ns"] == reader.settled_ns
    at = window_message.HEAD.size
    for plane, dtype in ((cells.lanes, "<u4"), (cells.kind, "u1"), (cells.of_kind, "u1"), (cells.coverage, "u1")):
        assert np.array_equal(np.frombuffer(answer.content, dtype, plane.size, at), plane.ravel())
        at += -(-plane.size * np.dtype(dtype).itemsize // 8) * 8
    assert at == len(answer.content)


def forward(sequence, start_ns):
    return frame_of(0, sequence, [(Kind.FORWARD, start_ns, start_ns + 900, 0, 0, 0, -1, -1, -1, "", "")], sequence - 1)


def test_browsers_ask_again_while_a_run_grows_and_keep_windows_of_one_that_is_sealed(people, writer):
    client = people.client("member")
    writer.add(forward(1, 1000), "1-0")
    writer.seal()
    writer.add(forward(2, 10**9), "2-0")
    writer.seal()
    early = address(people, query="from=0&to=100000")
    first = client.get(early)
    assert first["Cache-Control"] == "private, no-cache"
    writer.add(forward(3, 2 * 10**9), "3-0")
    writer.seal()
    again = client.get(early, headers={"If-None-Match": first["ETag"]})
    assert again.status_code == 304 and not again.content
    writer.add(forward(4, 5000), "4-0")
    writer.seal(complete=True)
    changed = client.get(early, headers={"If-None-Match": first["ETag"]})
    assert changed.status_code == 200 and changed["ETag"] != first["ETag"]
    assert changed["Cache-Control"] == "private, max-age=31536000, immutable"


def test_a_page_that_opens_by_a_window_pulls_only_what_came_later(people, writer):
    writer.add(forward(1, 1000), "1-0")
    writer.add_steps([{"step": 0}])
    writer.seal()
    cursor = parse(f"s:{head_of(people.client('member').get(address(people)))['segments']}:0")
    writer.add(forward(2, 5000), "2-0")
    writer.seal()
    history, batches = StoredHistory(people.run.id), []
    while isinstance(cursor, AfterSealed):
        batches.append(history.batch(cursor, 10**6))
        cursor = batches[-1].cursor
    assert [decode(frame).sequence for batch in batches for frame in batch.frames] == [2]
    assert [event for batch in batches for event in batch.events] == [{"type": "steps", "rows": [{"step": 0}]}]
    assert str(cursor) == "r:2-0"


@pytest.mark.parametrize(("query", "field"), [
    ("from=x", "from"), ("to=1e9", "to"), ("from=5&to=5", "to"), ("pixels=0", "pixels"), ("pixels=100000", "pixels"),
    ("lanes=5", "lanes"), ("lanes=9-2", "lanes"), ("from=99999999999999999999", "from"), ("from=٣", "from"),
])
def test_nonsense_is_told_what_would_do(people, writer, query, field):
    answer = people.client("member").get(address(people, query=query))
    (error,) = answer.json()["errors"]
    assert answer.status_code == 400 and error["field"] == field and "would do" in error["message"]


@pytest.mark.parametrize("query", ["", "from=-5000&to=-3000", "from=900000000000&to=900000000001", "lanes=900-905"])
def test_a_window_beside_all_that_was_recorded_is_empty(people, writer, query, monkeypatch):
    monkeypatch.setattr(windows, "FEW_SPANS", -1)
    if query:
        writer.add(forward(1, 1000), "1-0")
        writer.seal()
    head = head_of(people.client("member").get(address(people, query=query)))
    assert head["lanes"] == 0
