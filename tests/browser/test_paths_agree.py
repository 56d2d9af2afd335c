"""A step's longest chain, as the page follows it and as the analysis does, on the same random traces."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
import pytest
from playwright.sync_api import Page

from tests.browser.timeline_site import encoded, pipeline
from trainer.trace.analysis.collectives import matched
from trainer.trace.analysis.critical_path import critical_path
from trainer.trace.analysis.spans import Groups, of_frames
from trainer.trace.frame import decode

pytestmark = pytest.mark.browser

FOLLOWED = """async ([ranks, frames, steps]) => {
  const { path, trace: { Trace } } = window.bench;
  const { decodeFrame } = await import("/static/js/core/frame.js");
  const trace = new Trace(ranks);
  for (const text of frames) trace.append(decodeFrame(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer));
  return Array.from({ length: steps }, (_, step) => {
    const found = path.criticalPath(trace, step);
    const byRank = new Array(ranks).fill(0);
    for (const { span, ownNs } of found.links) byRank[span.rank] += ownNs;
    return { startNs: found.startNs, endNs: found.endNs, byRank };
  });
}"""


@pytest.mark.parametrize(("seed", "ranks", "micro_batches"), [(1, 4, 8), (2, 2, 4), (3, 3, 5), (4, 6, 6), (5, 4, 1), (6, 8, 16)])
def test_both_find_chains_that_are_as_long(bench: Page, seed: int, ranks: int, micro_batches: int) -> None:
    steps = 12
    rows, _ = pipeline(ranks=ranks, micro_batches=micro_batches, steps=steps, seed=seed)
    frames = [encoded(rank, 1, sorted(own, key=lambda row: row["start"]), 0) for rank, own in enumerate(rows)]
    spans = of_frames([decode(frame) for frame in frames], Groups(ranks))
    theirs = critical_path(spans, np.arange(steps), ranks, matched(spans))
    ours = bench.evaluate(FOLLOWED, [ranks, [b64encode(frame).decode() for frame in frames], steps])
    assert [found["endNs"] - found["startNs"] for found in ours] == pytest.approx(theirs.extent_ns.tolist(), rel=1e-6)
    # Both follow a chain through the step's whole length; which of two that are within the clocks' slack of each other, and
    # whether a transfer is the sender's, the receiver's or a gap, each has its own way. So ranks differ by transfers and ties.
    on_chain = [sum(found["byRank"]) for found in ours]
    assert on_chain == pytest.approx(theirs.by_rank_ns.sum(1).tolist(), rel=0.05)
