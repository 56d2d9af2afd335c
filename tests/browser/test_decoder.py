"""The page reads the same from a frame's bytes as Python does."""

from pathlib import Path

import numpy as np
import pytest

from dashboard.live.cursor import AfterEntry
from dashboard.live.messages import Batch
from tests.browser.static_server import serving
from trainer.trace.frame import COUNTER_COLUMNS, HEADER, MARK_COLUMNS, SPAN_COLUMNS, Frame, decode, empty, encode

pytestmark = pytest.mark.browser

GOLDEN = sorted(path for path in (Path(__file__).parents[1] / "unit" / "golden").iterdir() if path.read_bytes()[:4] == b"LKF1")

READ = """async ([path, offset]) => {
  const { decodeFrame } = await import("/js/core/frame.js");
  const bytes = await (await fetch(path)).arrayBuffer();
  const frame = decodeFrame(bytes, offset);
  const isView = Object.values(frame.spans).every((column) => typeof column === "number" || column.buffer === bytes);
  const plain = (table) => Object.fromEntries(
    Object.entries(table).map(([name, column]) => [name, typeof column === "number" ? column : Array.from(column)]));
  return { ...frame, isView, spans: plain(frame.spans), counters: plain(frame.counters), marks: plain(frame.marks) };
}"""
REFUSE = """async (path) => {
  const { decodeFrame, decodeBatch, BrokenBytes } = await import("/js/core/frame.js");
  const bytes = await (await fetch(path)).arrayBuffer();
  const outcome = (decode) => {
    try {
      decode(bytes);
      return "read";
    } catch (error) {
      return error instanceof BrokenBytes ? "refused" : String(error);
    }
  };
  return [outcome(decodeFrame), outcome(decodeBatch)];
}"""


def some_frame(sequence=1, spans=3):
    frame = Frame(
        rank=2, sequence=sequence,
        spans=empty(SPAN_COLUMNS, spans), counters=empty(COUNTER_COLUMNS, 1), marks=empty(MARK_COLUMNS),
        strings=["größer", "loss"], spans_before=2**40, written_ns=1.5e15, clock_offset_ns=-2.5, final=True,
    )
    frame.spans["start_ns"][:] = np.arange(spans) * 1e15 / 3
    frame.spans["step"][:] = -1
    frame.spans["kind"][:] = 255
    return frame


def assert_same(read, frame):
    assert read["rank"] == frame.rank and read["sequence"] == frame.sequence and read["final"] == frame.final
    assert read["spansBefore"] == frame.spans_before and read["spansDropped"] == frame.spans_dropped
    assert read["clockOffsetNs"] == frame.clock_offset_ns and read["clockUncertaintyNs"] == frame.clock_uncertainty_ns
    assert read["writtenNs"] == frame.written_ns and read["strings"] == frame.strings and read["isView"]
    for table, columns, layout in (
        ("spans", frame.spans, SPAN_COLUMNS), ("counters", frame.counters, COUNTER_COLUMNS), ("marks", frame.marks, MARK_COLUMNS)
    ):
        assert set(read[table]) == {name for name, _ in layout} | {"length"}
        for name, _ in layout:
            assert read[table][name] == columns[name].tolist(), f"{table}.{name}"


def test_there_are_golden_frames():
    assert GOLDEN


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_golden_bytes_are_read_as_python_reads_them(page, path):
    data = path.read_bytes()
    with serving({"/golden": ("application/octet-stream", data)}) as address:
        page.goto(address)
        assert_same(page.evaluate(READ, ["/golden", 0]), decode(data))


def test_a_frame_is_read_from_the_middle_of_other_bytes(page):
    frame = some_frame()
    with serving({"/bytes": ("application/octet-stream", bytes(16) + encode(frame) + bytes(8))}) as address:
        page.goto(address)
        assert_same(page.evaluate(READ, ["/bytes", 16]), frame)


def test_a_batch_gives_its_frames_and_what_happened(page):
    events = [{"type": "steps", "rows": [{"step": 0, "loss": 2.5, "note": "größer"}]}]
    data = Batch(AfterEntry((5, 6)), [encode(some_frame(1)), encode(some_frame(2, spans=0))], events, complete=True).encode()
    with serving({"/batch": ("application/octet-stream", data)}) as address:
        page.goto(address)
        read = page.evaluate("""async () => {
          const { decodeBatch } = await import("/js/core/frame.js");
          const batch = decodeBatch(await (await fetch("/batch")).arrayBuffer());
          return { ...batch, frames: batch.frames.map((frame) => [frame.sequence, frame.spans.length]) };
        }""")
    assert read == {"cursor": "r:5-6", "events": events, "complete": True, "merged": False, "frames": [[1, 3], [2, 0]]}


def broken():
    whole = encode(some_frame())
    header = np.frombuffer(whole, HEADER, 1).copy()
    header["spans"] = 4_000_000_000
    bad_strings = whole.replace("größer".encode(), b"\xff" * len("größer".encode()))
    batch = Batch(AfterEntry((1, 0)), [whole]).encode()
    return {
        "nothing": b"", "a cut header": whole[:50], "a cut frame": whole[:-8], "another magic": b"LKF9" + whole[4:],
        "too many spans": header.tobytes() + whole[HEADER.itemsize :], "text that is not UTF-8": bad_strings,
        "a batch cut in its meta": batch[:20], "a batch cut in a frame": batch[:-8],
        "a batch with more than its frames": batch + bytes(8),
        "a batch whose meta is longer than it": b"LKB1" + (2**31).to_bytes(4, "little") + bytes(16),
    }


@pytest.mark.parametrize("what", broken())
def test_broken_bytes_are_refused(page, what):
    with serving({"/bytes": ("application/octet-stream", broken()[what])}) as address:
        page.goto(address)
        assert page.evaluate(REFUSE, "/bytes") == ["refused", "refused"]


def test_the_page_knows_every_column_python_writes(page):
    """A golden frame may be empty; this one has every column filled, each with its own values."""
    frame = some_frame(spans=7)
    for table in (frame.spans, frame.counters, frame.marks):
        for place, column in enumerate(table.values()):
            if len(column):
                column[:] = (np.arange(len(column)) + place + 1).astype(column.dtype)
    with serving({"/bytes": ("application/octet-stream", encode(frame))}) as address:
        page.goto(address)
        assert_same(page.evaluate(READ, ["/bytes", 0]), frame)
