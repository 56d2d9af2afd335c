"""The first zoom level: sums are exact, and so is presence."""

import random

import pytest

from tests.unit.frames import all_spans, frame_of, shuffled
from trainer.trace import zoom
from trainer.trace.kinds import Kind, Lane
from trainer.trace.store import StoreReader, StoreWriter
from trainer.trace.zoom import CELL_NS


@pytest.mark.parametrize("seed", range(4))
def test_the_zoom_level_adds_up_to_the_spans_and_shows_every_cell_that_one_touches(tmp_path, seed):
    frames = shuffled(random.Random(seed))
    writer = StoreWriter(tmp_path)
    for frame in frames:
        writer.add(frame, "1-0")
        writer.seal()
    busy, touched = {}, {}
    for rank, start, duration, _, _, _, _, _, _, kind, lane, _, _ in all_spans(frames):
        for cell in range(int(start) // CELL_NS, int(max(start + duration - 1, start)) // CELL_NS + 1):
            inside = min(start + duration, (cell + 1) * CELL_NS) - max(start, cell * CELL_NS)
            busy[rank, lane, cell] = busy.get((rank, lane, cell), 0) + inside
            by_kind = touched.setdefault((rank, lane, cell), {})
            by_kind[kind] = by_kind.get(kind, 0) + inside
    rows = StoreReader(tmp_path).zoom()
    keys = list(zip(rows["rank"].tolist(), rows["lane"].tolist(), rows["cell"].tolist(), strict=True))
    assert dict(zip(keys, rows["busy_ns"].tolist(), strict=True)) == busy
    for key, kind, kind_busy in zip(keys, rows["kind"].tolist(), rows["kind_busy_ns"].tolist(), strict=True):
        assert touched[key][kind] == kind_busy == max(touched[key].values())


def test_a_window_of_the_zoom_level_opens_only_segments_that_reach_into_it(tmp_path):
    writer = StoreWriter(tmp_path)
    for step in range(10):
        start = step * 100 * CELL_NS
        rows = [(Kind.FORWARD, start, start + 5 * CELL_NS, step, 0, 0, -1, -1, -1, "", "")]
        writer.add(frame_of(0, step + 1, rows, before=step), "1-0")
        writer.seal()
    for number in (1, 2, 5, 6, 7, 8, 9, 10):
        (tmp_path / f"{number:06}.zoom.parquet").unlink()
    rows = StoreReader(tmp_path).zoom(202 * CELL_NS, 304 * CELL_NS - 1)
    assert rows["cell"].tolist() == [202, 203, 204, 300, 301, 302, 303]
    assert (rows["busy_ns"] == CELL_NS).all() and (rows["lane"] == Lane.COMPUTE).all()


def test_the_zoom_level_of_nothing_is_empty():
    assert len(zoom.dominant(zoom.merged([]))["cell"]) == 0
