"""Windows at any zoom: nothing that was done vanishes, nothing is invented, and coverage is right."""

import random
import sqlite3

import numpy as np
import pytest

from tests.unit.frames import all_spans, frame_of, shuffled, stored
from trainer.trace import pyramid, windows, zoom
from trainer.trace.kinds import Kind, Lane
from trainer.trace.store import StoreReader, StoreWriter

MS = 1_000_000


def expected(frames, window):
    """{(lane, cell): {kind: ns}} by going through every span and cell."""
    found, cell_ns = {}, 1 << window.bits
    for rank, start, duration, _, _, _, _, _, _, kind, lane, _, _ in all_spans(frames):
        if kind == Kind.WAIT:
            continue
        start, end = int(start), int(start + duration)
        first, last = max(start // cell_ns, window.first), min(max(end - 1, start) // cell_ns, window.end - 1)
        for cell in range(first, last + 1):
            inside = max(0, min(end, (cell + 1) * cell_ns) - max(start, cell * cell_ns))
            kinds = found.setdefault((rank * len(Lane) + lane, cell), {})
            kinds[kind] = kinds.get(kind, 0) + inside
    return found


def assert_right(cells, frames):
    window, cell_ns = cells.window, 1 << cells.window.bits
    wanted = expected(frames, window)
    planes = (cells.kind, cells.of_kind, cells.coverage)
    shown = {
        (int(cells.lanes[row]), window.first + int(cell)): [plane[row, cell] for plane in planes]
        for row, cell in zip(*np.nonzero(cells.coverage), strict=True)
    }
    assert shown.keys() == wanted.keys()
    for place, (kind, of_kind, coverage) in shown.items():
        kinds = wanted[place]
        assert kind in kinds and kinds[kind] >= max(kinds.values()) - 0.01 * cell_ns
        assert of_kind / 255 == pytest.approx(min(1, kinds[kind] / cell_ns), abs=0.02)
        assert coverage / 255 == pytest.approx(min(1, sum(kinds.values()) / cell_ns), abs=0.02)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("seal_every", [1, 7, 1000])
def test_any_window_shows_exactly_what_was_done_in_it(tmp_path, seed, seal_every):
    dice = random.Random(seed)
    frames = shuffled(dice)
    reader = stored(tmp_path, frames, seal_every)
    low, high = reader.manifest.start_ns, reader.manifest.end_ns
    views = [(low, high, 1400), (low, high, 40), (low - MS, high + 10 * MS, 3)]
    starts = [dice.randrange(high) for _ in range(4)]
    views += [(start, start + dice.randrange(1, high), dice.choice([5, 60, 300])) for start in starts]
    for from_ns, to_ns, pixels in views:
        cells = windows.cells(reader, windows.window_of(reader, from_ns, to_ns, pixels))
        assert 1 << cells.window.bits <= max((to_ns - from_ns) / pixels, 1 << zoom.LEAST_BITS)
        assert_right(cells, frames)


def test_lanes_can_be_picked(tmp_path):
    frames = shuffled(random.Random(3))
    reader = stored(tmp_path, frames, 5)
    whole = windows.cells(reader, windows.window_of(reader, 0, reader.manifest.end_ns, 100))
    some = windows.cells(reader, windows.window_of(reader, 0, reader.manifest.end_ns, 100, 5, 11))
    keep = (whole.lanes >= 5) & (whole.lanes < 11)
    assert some.lanes.tolist() == whole.lanes[keep].tolist()
    assert np.array_equal(some.coverage, whole.coverage[keep]) and np.array_equal(some.kind, whole.kind[keep])


def forward(rank, sequence, start_ns, end_ns, before=0):
    return frame_of(rank, sequence, [(Kind.FORWARD, start_ns, end_ns, 0, 0, 0, -1, -1, -1, "", "")], before)


def test_a_span_far_ahead_of_all_others_does_not_blur_them(tmp_path):
    """A clock that jumped by a day: its segment spans the day, the rest of the run is as sharp as before."""
    day = 86_400 * 1000 * MS
    frames = [forward(0, number + 1, number * MS, number * MS + MS // 2, number) for number in range(200)]
    frames.insert(100, forward(1, 1, day, day + MS))
    reader = stored(tmp_path, frames, 20)
    window = windows.window_of(reader, 90 * MS, 110 * MS, 1400)
    cells = windows.cells(reader, window)
    assert cells.window.bits == window.bits
    assert_right(cells, frames)
    assert_right(windows.cells(reader, windows.window_of(reader, 0, day + MS, 1400)), frames)


def test_a_window_reads_tiles_and_the_few_segments_it_must(tmp_path, monkeypatch):
    """Of a long run nothing but tiles is read for a whole view, and two segments at most for a close one."""
    frames = [forward(0, n + 1, n * MS, n * MS + MS // 2, n) for n in range(3000)]
    reader = stored(tmp_path, frames, 50)
    opened = []
    read = windows.segments.read

    def noted(folder, segment, columns=None):
        opened.append(segment.number)
        return read(folder, segment, columns)

    monkeypatch.setattr(windows.segments, "read", noted)
    assert_right(windows.cells(reader, windows.window_of(reader, 0, 3000 * MS, 700)), frames)
    assert opened == []
    assert_right(windows.cells(reader, windows.window_of(reader, 1001 * MS, 1003 * MS, 1400)), frames)
    assert len(opened) <= 2


def test_what_the_pyramid_does_not_hold_yet_is_taken_from_the_segments(tmp_path, monkeypatch):
    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    frames = shuffled(random.Random(4))
    writer = StoreWriter(tmp_path)
    real = pyramid.PyramidWriter.add
    for place, frame in enumerate(frames):
        monkeypatch.setattr(pyramid.PyramidWriter, "add", full if place % 3 else real)
        writer.add(frame, f"{place}-0")
        if place % 4 == 3:
            writer.seal()
            reader = StoreReader(tmp_path)
            window = windows.window_of(reader, 0, reader.manifest.end_ns, 50)
            assert_right(windows.cells(reader, window), frames[: place + 1])
    monkeypatch.setattr(pyramid.PyramidWriter, "add", real)
    writer.seal(complete=True)
    with pyramid.opened(tmp_path) as found:
        assert found.segments == len(StoreReader(tmp_path).segments)


@pytest.mark.parametrize("damage", ["missing", "foreign", "truncated", "other version", "ahead"])
def test_a_pyramid_that_is_lost_or_broken_is_made_again(tmp_path, damage):
    frames = shuffled(random.Random(5))
    stored(tmp_path, frames, 9)
    path = tmp_path / pyramid.NAME
    if damage == "missing":
        path.unlink()
    elif damage == "foreign":
        path.write_bytes(b"this is not a database, whatever it is" * 100)
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        with sqlite3.connect(path) as database:
            database.execute("PRAGMA user_version = 99" if damage == "other version" else "UPDATE head SET segments = 99")
    StoreWriter(tmp_path)
    reader = StoreReader(tmp_path)
    assert_right(windows.cells(reader, windows.window_of(reader, 0, reader.manifest.end_ns, 60)), frames)


def test_a_segment_that_is_broken_is_named_and_the_rest_is_shown(tmp_path, caplog):
    frames = [forward(0, n + 1, n * MS, n * MS + MS // 2, n) for n in range(40)]
    reader = stored(tmp_path, frames, 10)
    (tmp_path / "000002.spans.parquet").write_bytes(b"PAR1 but no more")
    sequences = [np.frombuffer(frame[8:16], "<u8")[0] for frame in reader.frames(0, 10**9)[1]]
    assert sequences == [10, 30, 40] and "000002.spans.parquet" in caplog.text
    shown = windows.spans(reader, windows.window_of(reader, 0, 40 * MS, 100))
    assert sum(len(columns["kind"]) for _, columns, _ in shown) == 30
    (tmp_path / pyramid.NAME).unlink()
    StoreWriter(tmp_path)
    cells = windows.cells(reader, windows.window_of(reader, 0, 40 * MS, 40))
    assert_right(cells, frames[:10] + frames[20:])


def test_the_spans_of_a_window_are_those_that_touch_it(tmp_path):
    frames = shuffled(random.Random(6))
    reader = stored(tmp_path, frames, 6)
    window = windows.window_of(reader, reader.manifest.end_ns // 3, reader.manifest.end_ns // 2, 100, 4, 13)
    wanted = sorted(
        (rank, start, duration, kind)
        for rank, start, duration, _, _, _, _, _, _, kind, lane, _, _ in all_spans(frames)
        if 4 <= rank * len(Lane) + lane < 13 and start < window.to_ns and start + max(duration, 1) > window.from_ns
    )
    found = sorted(
        (rank, *row) for rank, columns, _ in windows.spans(reader, window)
        for row in zip(*(columns[name].tolist() for name in ("start_ns", "duration_ns", "kind")), strict=True)
    )
    assert found == wanted
