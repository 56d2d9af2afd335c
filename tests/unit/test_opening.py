"""How a page begins: small runs whole, long ones by windows, and up to when windows are settled."""

import math

import pytest

from dashboard.live.opening import opening
from tests.unit.frames import frame_of
from trainer.trace.frame import decode
from trainer.trace.kinds import Kind
from trainer.trace.store import StoreReader, StoreWriter

MS = 1_000_000


def frame(rank, sequence, start_ns, **fields):
    row = (Kind.FORWARD, start_ns, start_ns + MS, 0, 0, 0, -1, -1, -1, "", "")
    return frame_of(rank, sequence, [row], sequence - 1, **fields)


@pytest.fixture
def writer(tmp_path):
    """Ten segments of one span each."""
    writer = StoreWriter(tmp_path)
    for number in range(10):
        writer.add(frame(0, number + 1, number * 2 * MS, written_ns=(number * 2 + 1) * MS), f"{number}-1")
        writer.seal()
    return writer


def test_a_run_that_fits_the_page_comes_whole(writer):
    assert opening(StoreReader(writer.folder), 10, 3) == {"most_spans": 10, "sealed": None}


def test_of_a_finished_run_that_does_not_fit_nothing_but_figures_come_by_the_socket(writer):
    writer.seal(complete=True)
    assert opening(StoreReader(writer.folder), 9, 3)["sealed"] == {
        "after": "s:10:0", "spans_before": 10, "start_ns": 0, "end_ns": 19 * MS, "held_from_ns": None,
    }


@pytest.mark.parametrize(("tail", "before"), [(1, 9), (3, 7), (10, 0), (99, 0)])
def test_of_a_run_that_goes_on_its_latest_spans_come_by_the_socket(writer, tail, before):
    reader = StoreReader(writer.folder)
    sealed = opening(reader, 9, tail)["sealed"]
    assert (sealed["after"], sealed["spans_before"]) == (f"s:{before}:0", before)
    sent = [decode(each) for each in reader.frames(before, 10**9)[1]]
    assert sum(len(each.spans["kind"]) for each in sent) == 10 - before >= min(tail, 10)
    assert sealed["held_from_ns"] == max(0, (before * 2 - 1) * MS)
    touching = [number for number in range(10) if number * 2 * MS + MS > sealed["held_from_ns"]]
    assert touching == [int(each.spans["start_ns"][0]) // (2 * MS) for each in sent]


def test_a_window_is_settled_up_to_what_the_slowest_rank_has_told(writer):
    assert StoreReader(writer.folder).settled_ns == 19 * MS
    writer.add(frame(1, 1, 5 * MS, written_ns=6 * MS), "11-1")
    writer.seal()
    assert StoreReader(writer.folder).settled_ns == 6 * MS
    writer.add(frame(1, 2, 7 * MS, written_ns=8 * MS, final=True), "12-1")
    writer.seal()
    assert StoreReader(writer.folder).settled_ns == 19 * MS
    writer.seal(complete=True)
    assert StoreReader(writer.folder).settled_ns == math.inf


def test_a_rank_that_was_silent_for_long_is_not_waited_for(writer):
    reader = StoreReader(writer.folder)
    for number in range(10, 20):
        writer.add(frame(1, number - 9, number * 2 * MS, written_ns=(number * 2 + 1) * MS), f"{number}-1")
        writer.seal()
    assert StoreReader(writer.folder, reader).settled_ns == 39 * MS


def test_before_anything_is_sealed_nothing_is_settled(tmp_path):
    reader = StoreReader(tmp_path)
    assert reader.settled_ns == -math.inf and opening(reader, 1, 1)["sealed"] is None
