"""What the timeline says of spans: the letters in them, and what each waited for, over made-up spans in a page of their own."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.timeline_site import run
from trainer.trace.kinds import Kind

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(("large_px", "sizes"), [
    (19, {1: "large", 2: "large"}), (21, {1: "large", 2: "small"}), (40, {1: "small", 2: "small"}),
])
def test_letters_of_a_kind_are_of_one_size_in_a_lane(bench: Page, large_px: int, sizes: dict[int, str]) -> None:
    """Forwards are 34 px wide here, backwards 21 or 23 by turns, and letters fit with a pixel to spare."""
    drawn = run(bench, """
      const rows = [];
      for (let i = 0, at = 0; i < 12; i++) {
        const [kind, px] = i % 3 === 0 ? [1, 34] : [2, i % 2 ? 21 : 23];
        rows.push({ start: at, duration: px * 1000, kind, lane: 0, step: 0, microBatch: 0, stage: 0 });
        at += px * 1000;
      }
      b.timeline.append([spans.frameOf(0, rows)]);
      b.timeline.setRange(0, 1000 * b.timeline.view.widthPx);
      const sprite = (text, size, widthPx) => ({ canvas: { size, kind: "FB".indexOf(text[0]) + 1 }, widthPx, heightPx: 16 });
      const letters = (size, widthPx) => ({ get: (text) => sprite(text, size, widthPx) });
      const found = {};
      const drawImage = ({ size, kind }) => (found[kind] ??= new Set()).add(size);
      const context = { drawImage, fillRect() {}, beginPath() {}, roundRect() {}, fill() {} };
      b.labels.drawLabels(context, b.timeline.scene(), letters("large", LARGE), letters("small", 12), null);
      return Object.entries(found).filter(([kind]) => kind > 0).map(([kind, sizes]) => [Number(kind), [...sizes].join(" and ")]);
    """.replace("LARGE", str(large_px)))
    assert dict(map(tuple, drawn)) == sizes


def test_what_waited_for_a_forward_is_the_forward_behind_it_though_it_began_with_its_data_on_the_way(bench: Page) -> None:
    """Paced work begins when its stage is free; the message that it needs may still be on its way then."""
    kind, stage = run(bench, """
      const trace = new b.trace.Trace(2, []);
      const one = { step: 0, microBatch: 2 };
      const rows = [[
        { ...one, start: 0, duration: 20e6, kind: 1, lane: 0, stage: 0 },
        { ...one, start: 20.1e6, duration: 0.2e6, kind: 7, lane: 2, stage: 1, peer: 1 },
      ], [
        { ...one, start: 20.2e6, duration: 20e6, kind: 1, lane: 0, stage: 1 },
        { ...one, start: 60e6, duration: 40e6, kind: 2, lane: 0, stage: 1 },
        { ...one, start: 20.3e6, duration: 0.5e6, kind: 8, lane: 2, stage: 1, peer: 0 },
      ]];
      rows.forEach((each, rank) => trace.append(spans.frameOf(rank, each)));
      const next = b.dependencies.nextDependency(trace, b.hit.hit(trace, 0, 0, 1e6, 0).span);
      return [next.kind, next.stage];
    """)
    assert (kind, stage) == (Kind.FORWARD, 1)
