"""The timeline's view: zoom, head, ticks."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.timeline_site import run

pytestmark = pytest.mark.browser


def test_zoom_keeps_the_time_under_the_pointer_and_stops_where_floats_end(bench: Page) -> None:
    moved, least, most = run(bench, """
      const view = new b.view.View(1000);
      view.setExtent(0, 3600e9);
      view.setRange(1800e9, 1801e9);
      const anchor = view.timeAt(300);
      view.zoomAt(300, 0.01);
      const moved = Math.abs(view.timeAt(300) - anchor);
      for (let i = 0; i < 200; i++) view.zoomAt(300, 0.5);
      const least = view.nsPerPx;
      for (let i = 0; i < 200; i++) view.zoomAt(300, 2);
      return [moved, least, view.spanNs / 3600e9];
    """)
    assert moved < 1
    assert 0.02 < least < 0.2  # at 1,800 s a float64 has steps of 0.0002 ns, and a hundredth of that is no picture
    assert most == pytest.approx(1.5)


def test_the_head_moves_evenly_while_spans_come_in_bursts(bench: Page) -> None:
    moves, leads, stopped = run(bench, """
      const head = new b.follow.Head();
      const moves = [], leads = [];
      let nowMs = 0, before = NaN;
      for (let frame = 0; frame < 600; frame++) {
        nowMs += 1000 / 60;
        if (frame % 6 === 0) head.note(nowMs * 1e6 - 40e6);
        const at = head.advance(nowMs);
        if (frame > 200) { moves.push((at - before) / (1e9 / 60)); leads.push((at - head.newestNs) / 1e6); }
        before = at;
      }
      for (let frame = 0; frame < 600; frame++) head.advance(nowMs += 1000 / 60);
      const at = head.atNs;
      const range = (values) => [Math.min(...values), Math.max(...values)];
      return [range(moves), range(leads), head.advance(nowMs + 16) === at];
    """)
    assert moves[0] > 0.85 and moves[1] < 1.15  # of the clock's pace
    assert leads[0] > 0 and leads[1] < 200
    assert stopped


def test_ticks_are_one_two_or_five_times_a_power_of_ten(bench: Page) -> None:
    ticks, words = run(bench, """
      const ticks = [[2450e6, 50e6], [12e9, 5e9], [1500, 500], [1.25e9, 1e5], [9800e6, 200e6, 10.4e9]];
      const texts = ticks.map((tick) => b.ruler.tickText(...tick));
      return [[3, 20, 21, 99e6, 1.2e9].map(b.ruler.tickNs), texts];
    """)
    assert ticks == [5, 20, 50, 100e6, 2e9]
    assert words == ["2450 ms", "12 s", "1.5 µs", "1.2500 s", "9.8 s"]  # the last beside ticks of 10 s and more
