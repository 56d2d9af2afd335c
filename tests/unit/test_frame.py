"""The frame's bytes: what is written is read, and what is broken is refused."""

import contextlib
import random
import struct

import numpy as np
import pytest

from dashboard.live.messages import decode_batch
from tests.unit.frames import frame_of, random_frames, same, spans_of
from tests.unit.golden_frames import FOLDER, golden
from trainer.trace.frame import SPAN_COLUMNS, BrokenFrame, decode, encode


@pytest.mark.parametrize("seed", range(25))
def test_random_frames_survive_the_way_through_bytes(seed):
    for frame in random_frames(random.Random(seed), rank=seed, count=4):
        data = encode(frame)
        assert len(data) % 8 == 0
        assert same(decode(data), frame)


@pytest.mark.parametrize("name", sorted(golden()))
def test_golden_bytes_are_what_is_written_today(name):
    assert (FOLDER / name).read_bytes() == golden()[name]


def test_golden_frame_holds_what_it_is_meant_to():
    frame = decode((FOLDER / "frame.bin").read_bytes())
    assert (frame.rank, frame.sequence, frame.final) == (2, 1, False)
    assert frame.spans["start_ns"].tolist() == [1_000, 2_500, 20_003_000, 90_000_000_000_001, 0]
    assert [frame.strings[place] for place in frame.spans["name"]] == ["", "F3", "F3 →", "größer 🚀", "step 4"]
    assert frame.spans["lane"].tolist() == [0, 0, 2, 1, 3]
    assert np.isinf(frame.counters["value"][1])
    assert frame.strings[frame.marks["text"][0]] == "1780000000123456789"


def test_frames_in_a_batch_are_the_golden_frames():
    meta, body = decode_batch((FOLDER / "batch.bin").read_bytes())
    assert meta["frames"] == 3
    assert body == golden()["frame.bin"] + golden()["frame-empty.bin"] + golden()["frame-last.bin"]


def test_the_largest_numbers_keep_every_digit():
    (span,) = spans_of(decode((FOLDER / "frame-last.bin").read_bytes()))
    assert 2**52 + 1 in span and 2**31 - 1 in span and 32_767 in span


def test_columns_begin_at_multiples_of_their_width():
    data = encode(random_frames(random.Random(5), 1, 1)[0])
    at = {name: column.__array_interface__["data"][0] for name, column in decode(data).spans.items()}
    first = at["start_ns"]
    assert all((at[name] - first) % 8 == 0 for name, _ in SPAN_COLUMNS)


@pytest.mark.parametrize("cut", [0, 4, 95, 96, -8])
def test_a_frame_that_was_cut_off_is_refused(cut):
    with pytest.raises(BrokenFrame):
        decode(golden()["frame.bin"][:cut])


def test_bytes_after_the_frame_are_refused():
    with pytest.raises(BrokenFrame):
        decode(golden()["frame.bin"] + bytes(8))


def test_another_version_is_refused():
    with pytest.raises(BrokenFrame, match="LKF1"):
        decode(b"LKF2" + golden()["frame.bin"][4:])


def test_a_count_that_does_not_fit_is_refused():
    data = bytearray(golden()["frame.bin"])
    data[24:28] = struct.pack("<I", 2**31)
    with pytest.raises(BrokenFrame):
        decode(bytes(data))


@pytest.mark.parametrize("strings", [b'{"a":1} ', b"not JSON", b"[1,2,3] ", b'["\xff"]  '])
def test_strings_that_are_no_list_of_text_are_refused(strings):
    data = bytearray(golden()["frame-empty.bin"])
    data[-8:] = strings[:8]
    data[20:24] = struct.pack("<I", 8)
    with pytest.raises(BrokenFrame):
        decode(bytes(data))


def test_random_bytes_never_raise_anything_but_broken_frame():
    dice = random.Random(1)
    whole = golden()["frame.bin"]
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(dice.randrange(1, 6)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        with contextlib.suppress(BrokenFrame):
            decode(bytes(data))


def test_columns_of_different_lengths_are_not_written():
    frame = frame_of(0, 1, [])
    frame.spans["kind"] = np.zeros(1, np.uint8)
    with pytest.raises(ValueError, match="different lengths"):
        encode(frame)


def test_a_counter_may_be_no_number():
    frame = frame_of(0, 1, [], counters=[("loss", float("nan"), 0, 0)])
    assert np.isnan(decode(encode(frame)).counters["value"][0])
