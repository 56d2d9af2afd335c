"""The store gives back every span exactly, seals at once or not at all, and hands over to the live stream."""

import json
import random
import shutil

import numpy as np
import pytest

from tests.unit.frames import all_spans, frame_of, random_frames, shuffled, spans_of
from trainer.trace import manifest
from trainer.trace.frame import BrokenFrame, decode
from trainer.trace.kinds import Kind
from trainer.trace.store import StoreReader, StoreWriter


def history(reader, max_bytes=10**9):
    """All frames of the store, read batch by batch."""
    frames, after = [], 0
    while True:
        last, batch = reader.frames(after, max_bytes)
        if last == after:
            return frames
        frames += map(decode, batch)
        after = last


@pytest.mark.parametrize("seed", range(8))
def test_every_span_counter_and_mark_comes_back_exactly(tmp_path, seed):
    dice = random.Random(seed)
    frames = shuffled(dice)
    writer = StoreWriter(tmp_path)
    for place, frame in enumerate(frames):
        assert writer.add(frame, f"{place}-0") == 0
        if dice.random() < 0.2:
            writer.seal()
    writer.seal(complete=True)
    reader = StoreReader(tmp_path)
    read = history(reader)
    assert all_spans(read) == all_spans(frames)
    assert reader.manifest.spans == sum(len(frame.spans["kind"]) for frame in frames)
    assert reader.manifest.complete and reader.manifest.sealed_through == f"{len(frames) - 1}-0"
    losses = sorted(value for frame in frames for value in frame.counters["value"].tolist())
    assert sorted(reader.counters("loss")["value"].tolist()) == losses
    assert sorted(value for frame in read for value in frame.counters["value"].tolist()) == losses
    assert len(reader.marks()) == sum(len(frame.marks["kind"]) for frame in frames) == sum(len(f.marks["kind"]) for f in read)


def test_history_holds_spans_in_the_order_of_recording(tmp_path):
    frames = random_frames(random.Random(3), 1, 5)
    writer = StoreWriter(tmp_path)
    for frame in frames:
        writer.add(frame, "1-0")
    writer.seal()
    (read,) = history(StoreReader(tmp_path))
    assert spans_of(read) == [span for frame in frames for span in spans_of(frame)]
    assert (read.sequence, read.spans_before, read.final) == (5, 0, True)
    assert read.clock_uncertainty_ns == 1.5


def test_history_comes_in_batches_of_whole_segments_with_rising_numbers(tmp_path):
    writer = StoreWriter(tmp_path)
    for frame in shuffled(random.Random(1)):
        writer.add(frame, "1-0")
        writer.seal()
    reader = StoreReader(tmp_path)
    assert [reader.frames(number, 1)[0] for number in range(3)] == [1, 2, 3]
    assert reader.frames(0, 10**9)[0] == len(reader.segments) == 48
    assert reader.frames(48, 10**9) == (48, [])
    for rank in range(4):
        numbers = [frame.sequence for frame in history(reader, 20_000) if frame.rank == rank]
        assert numbers == sorted(set(numbers))


def test_a_frame_that_came_before_changes_nothing(tmp_path):
    frames = random_frames(random.Random(2), 0, 4)
    writer = StoreWriter(tmp_path)
    assert [writer.add(frame, "1-0") for frame in frames[:2]] == [0, 0]
    assert writer.add(frames[0], "2-0") is None
    writer.seal()
    assert writer.add(frames[1], "3-0") is None
    assert [writer.add(frame, "4-0") for frame in frames[1:]] == [None, 0, 0]
    writer.seal()
    assert all_spans(history(StoreReader(tmp_path))) == all_spans(frames)


def test_missing_frames_and_lost_spans_are_counted(tmp_path):
    frames = random_frames(random.Random(4), 0, 9)
    writer = StoreWriter(tmp_path)
    assert writer.add(frames[0], "1-0") == 0
    assert writer.add(frames[3], "2-0") == 2
    writer.seal()
    assert writer.add(frames[8], "3-0") == 4
    writer.seal(complete=True)
    lost = sum(len(frames[at].spans["kind"]) for at in (1, 2, 4, 5, 6, 7))
    assert writer.dropped_spans == lost == StoreReader(tmp_path).manifest.dropped_spans
    assert StoreReader(tmp_path).manifest.ranks[0].missing_frames == 6


def test_spans_that_a_rank_dropped_are_counted_though_no_frame_is_missing(tmp_path):
    writer = StoreWriter(tmp_path)
    writer.add(frame_of(0, 1, [(Kind.FORWARD, 0, 1, 0, 0, 0, -1, -1, -1, "", "")], spans_dropped=3), "1-0")
    assert writer.dropped_spans == 3


@pytest.mark.parametrize("seed", range(6))
def test_a_writer_killed_at_any_moment_neither_loses_nor_doubles_a_span(tmp_path, seed):
    """A kill is a copy of the folder taken between two writes; the next writer gets what was not acknowledged again."""
    dice = random.Random(seed)
    frames = shuffled(dice)
    folder, acknowledged = tmp_path / "0", 0
    writer, place, life = StoreWriter(folder), 0, 0
    while place < len(frames):
        writer.add(frames[place], f"{place}-0")
        place += 1
        if dice.random() < 0.25:
            writer.add_steps([{"step": place}])
            writer.seal()
            if dice.random() < 0.7:  # else killed between sealing and acknowledging
                acknowledged = place
        if dice.random() < 0.2:
            life += 1
            folder = shutil.copytree(folder, tmp_path / str(life))
            number = manifest.load(folder).segments + 1
            (folder / f"{number:06}.spans.parquet").write_bytes(b"half a segm")
            (folder / "manifest.json.part").write_bytes(b"{")
            with (folder / "steps.jsonl").open("ab") as file:
                file.write(b'{"step": 9')
            writer, place = StoreWriter(folder), acknowledged
    writer.seal(complete=True)
    reader = StoreReader(folder)
    assert all_spans(history(reader)) == all_spans(frames)
    assert reader.manifest.dropped_spans == 0
    assert {path.name for path in folder.iterdir() if "parquet" in path.name or "part" in path.name} == {
        f"{segment.number:06}.spans.parquet" for segment in reader.segments
    }
    steps = [row["step"] for row in reader.steps()]
    assert steps == sorted(set(steps))


def test_sealing_that_fails_leaves_all_waiting_and_can_be_repeated(tmp_path, monkeypatch):
    frames = random_frames(random.Random(7), 0, 3)
    writer = StoreWriter(tmp_path)
    for frame in frames:
        writer.add(frame, "1-0")
    writer.add_steps([{"step": 0}])
    real = manifest.write_whole

    def full(path, data):
        if path.name == manifest.NAME:
            raise OSError(28, "No space left on device")
        real(path, data)

    monkeypatch.setattr(manifest, "write_whole", full)
    for _ in range(2):
        with pytest.raises(OSError, match="No space"):
            writer.seal()
    assert StoreReader(tmp_path).segments == []
    monkeypatch.setattr(manifest, "write_whole", real)
    writer.seal()
    reader = StoreReader(tmp_path)
    assert all_spans(history(reader)) == all_spans(frames) and reader.steps() == [{"step": 0}]


@pytest.mark.parametrize("seed", range(10))
def test_a_viewer_who_goes_from_segments_to_the_stream_sees_every_span_once(tmp_path, seed):
    """The stream is trimmed one seal behind. The viewer drops what it has by rank and number, as the page does."""
    dice = random.Random(seed)
    frames = shuffled(dice)
    writer, stream = StoreWriter(tmp_path), []
    seen, last, segment, entry = [], {}, 0, None

    def show(shown):
        for frame in shown:
            if frame.sequence > last.get(frame.rank, 0):
                seen.extend(spans_of(frame))
                last[frame.rank] = frame.sequence

    def look():
        nonlocal segment, entry
        reader = StoreReader(tmp_path)
        if entry is None:
            went, batch = reader.frames(segment, dice.choice([1, 30_000]))
            show(map(decode, batch))
            if went == segment:
                entry = int(reader.manifest.sealed_through.split("-")[0])
            segment = went
        else:
            following = [(place, frame) for place, frame in stream if place > entry][: dice.randrange(1, 4)]
            show(frame for _, frame in following)
            entry = following[-1][0] if following else entry

    for place, frame in enumerate(frames, 1):
        stream.append((place, frame))
        writer.add(frame, f"{place}-0")
        if dice.random() < 0.2:
            trim_to = int(writer.manifest.sealed_through.split("-")[0])
            writer.seal()
            if entry is not None:  # a viewer at the head keeps up
                while stream[-1][0] > entry:
                    look()
            stream = [kept for kept in stream if kept[0] >= trim_to]
        if dice.random() < 0.5:
            look()
    while entry is None or stream[-1][0] > entry:
        look()
    assert sorted(seen) == all_spans(frames)


@pytest.mark.parametrize(("column", "value"), [
    ("start_ns", float("nan")), ("start_ns", 2.0**54), ("duration_ns", -1.0), ("duration_ns", float("inf")),
    ("bytes", float("nan")), ("name", 60_000), ("duration_ns", 2.0**50),
])
def test_a_frame_that_no_rank_can_have_recorded_is_refused_and_changes_nothing(tmp_path, column, value):
    frame = frame_of(0, 1, [(Kind.FORWARD, 0, 1, 0, 0, 0, -1, -1, -1, "F0", "")])
    frame.spans[column][0] = value
    writer = StoreWriter(tmp_path)
    with pytest.raises(BrokenFrame):
        writer.add(frame, "1-0")
    assert writer.spans == 0 and writer.ranks == {}


def test_a_segment_is_due_by_size_and_by_age(tmp_path):
    writer = StoreWriter(tmp_path, most_spans=100, least_age_seconds=3600)
    assert not writer.is_due
    writer.add(random_frames(random.Random(1), 0, 1)[0], "1-0")
    assert not writer.is_due
    for frame in random_frames(random.Random(1), 1, 20):
        writer.add(frame, "1-0")
    assert writer.is_full and writer.is_due
    old = StoreWriter(tmp_path / "old", least_age_seconds=0)
    old.passed("1-0")
    assert old.is_due


def test_events_alone_move_the_stream_on_without_a_segment(tmp_path):
    writer = StoreWriter(tmp_path)
    writer.passed("7-1")
    writer.seal()
    assert StoreReader(tmp_path).manifest.sealed_through == "7-1" and StoreReader(tmp_path).segments == []


def test_a_store_of_another_version_is_not_misread(tmp_path):
    StoreWriter(tmp_path).seal()
    given = json.loads((tmp_path / manifest.NAME).read_text())
    (tmp_path / manifest.NAME).write_text(json.dumps({**given, "version": 99}))
    with pytest.raises(ValueError, match="another version"):
        StoreReader(tmp_path)


def test_a_run_that_recorded_nothing_can_be_read(tmp_path):
    reader = StoreReader(tmp_path / "nothing")
    assert reader.frames(0, 10**6) == (0, []) and reader.steps() == [] and reader.marks() == []
    assert len(reader.counters("loss")["value"]) == 0


def test_text_of_both_columns_keeps_apart(tmp_path):
    rows = [(Kind.SEND, 0, 1, 0, 0, 0, 1, 8, 1, "pp", "dp"), (Kind.SEND, 2, 3, 0, 0, 0, 1, 8, 2, "dp", "pp")]
    writer = StoreWriter(tmp_path)
    writer.add(frame_of(0, 1, rows), "1-0")
    writer.seal()
    (read,) = history(StoreReader(tmp_path))
    assert [read.strings[place] for place in read.spans["name"]] == ["pp", "dp"]
    assert [read.strings[place] for place in read.spans["group"]] == ["dp", "pp"]
    assert np.array_equal(np.unique(read.strings), ["dp", "pp"])


def test_the_manifest_does_not_grow_with_the_run(tmp_path):
    frames = random_frames(random.Random(8), 0, 60)
    writer, sizes = StoreWriter(tmp_path), []
    for frame in frames:
        writer.add(frame, f"{frame.sequence}-0")
        writer.seal()
        sizes.append((tmp_path / manifest.NAME).stat().st_size)
    assert max(sizes[10:]) - min(sizes[10:]) < 40  # digits
    older = None
    for _ in range(2):
        older = StoreReader(tmp_path, older)
        assert [segment.number for segment in older.segments] == list(range(1, 61))
