"""The search's language: the page's reading of it and the server's, on the same random spans."""

from __future__ import annotations

import random
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.unit.frames import shuffled
from trainer.trace.frame import encode
from trainer.trace.search import matches
from trainer.trace.span_query import BadQuery, parse
from trainer.trace.store import StoreReader, StoreWriter

pytestmark = pytest.mark.browser

RANKS = 4
FOUND = """async ([ranks, frames, texts]) => {
  const { query, trace: { Trace } } = window.bench;
  const { decodeFrame } = await import("/static/js/core/frame.js");
  const trace = new Trace(ranks);
  for (const text of frames) trace.append(decodeFrame(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer));
  return texts.map((text) => {
    const { test, holds, error } = query.parseQuery(text, trace);
    if (!test) return error;
    const found = [];
    for (const lane of trace.ranks.flat()) {
      if (!holds(lane)) continue;
      for (const chunk of lane.chunks) {
        for (let row = 0; row < chunk.spans; row++) if (test(chunk, row)) found.push([chunk.start_ns[row], lane.number]);
      }
    }
    return found.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
  });
}"""
GOOD = (
    "kind:all_reduce", "kind:all-reduce,bar", "kind:backward", "kind:back kind:w", "KIND:Loading",
    "kind:forward kind:backward", "dur:>5ms", "dur:>=1", "dur:<=0ns", "dur:<1us", "dur:2ms-40ms", "dur:1.5ms-.02min", "dur:0",
    "dur:1", "dur:3µs-3s", "dur:5.ms-6MS", "rank:0-2 rank:1,3", "rank:9", "rank:3,0-0", "mb:0-2000", "mb:7-3",
    "step:0-1000000000", "step:5", "stage:1,2,3-500", "peer:10-90", "seq:0-99999999", "lane:c", "lane:p2p",
    "lane:HOST lane:h", "size:>1MB", "size:<1GB", "size:0", "size:<=0b", "size:1kb-100gb", "name:f",
    "name:GRÖSSER", "name:größer",
    "name:dp", "F0", "f0", "F00", "B7", "b", "F", "w12", "opt", "opt3", "wait", "DATA", "dp pp", "backward,", "all",
    "🚀", ":5", "kind:all dur:>1ms rank:0-1 size:>0", "größer dur:>10ms",
)
BAD = (
    "kind:banana", "kind:,", "dur:soon", "dur:5hours", "dur:>1ms-2ms", "dur:1.2.3ms", "dur:.", "dur:-5",
    "dur:5constructor", "dur:5\u212ab", "size:>", "size:1PB", "rank:x", "rank:1-", "rank:", "rank:1,,2", "rank:٣",
    "mb:-1", "lane:q", "colour:red", "constructor:3", "F0 dur:",
)


def random_query(dice: random.Random) -> str:
    number = lambda most: str(dice.randrange(most))  # noqa: E731
    parts = [
        f"kind:{dice.choice(['f', 'back', 'all_gather', 'se', 're', 'loading,wait'])}",
        f"dur:{dice.choice(['', '>', '<', '>=', '<='])}{number(60)}{dice.choice(['ms', 'us', 'ns', ''])}",
        f"dur:{number(9)}us-{number(60)}ms", f"rank:{number(RANKS)}-{number(RANKS)}", f"mb:{number(4096)}-{number(4096)}",
        f"lane:{dice.choice('cph')}", f"size:{dice.choice('<>')}{number(999)}{dice.choice(['mb', 'GB', 'kb'])}",
        f"stage:{number(500)}-{number(1024)},{number(9)}",
        dice.choice(["F0", "b7", "dp", "größer", "e", "opt", f"f{number(30)}"]),
    ]
    return " ".join(dice.sample(parts, dice.randint(1, 3)))


def server_finds(reader: StoreReader, text: str) -> Any:
    try:
        query = parse(text)
    except BadQuery as bad:
        return str(bad)
    found: list[list[float]] = []
    for segment in reader.segments:
        starts, lanes = matches(reader, query, segment.number)
        found += [[start, lane] for start, lane in zip(starts.tolist(), lanes.tolist(), strict=True)]
    return sorted(found)


def test_both_find_the_same_spans_and_refuse_in_the_same_words(bench: Page, tmp_path: Path) -> None:
    dice = random.Random(7)
    frames = shuffled(dice, RANKS, 40)
    writer = StoreWriter(tmp_path)
    for at, frame in enumerate(frames):
        writer.add(frame, f"1-{at}")
        if at == 70:
            writer.seal()
    writer.seal(complete=True)
    reader = StoreReader(tmp_path)
    texts = [*GOOD, *BAD, *(random_query(dice) for _ in range(200))]
    ours = bench.evaluate(FOUND, [RANKS, [b64encode(encode(frame)).decode() for frame in frames], texts])
    theirs = [server_finds(reader, text) for text in texts]
    assert len(reader.segments) == 2
    for text, one, other in zip(texts, ours, theirs, strict=True):
        assert one == other, text
    assert all(isinstance(found, list) for found in theirs[: len(GOOD)])
    assert all(isinstance(found, str) for found in theirs[len(GOOD) :][: len(BAD)])
    assert sum(bool(found) for found in theirs[: len(GOOD)]) > 40
    assert sum(bool(found) for found in theirs[-200:]) > 80
