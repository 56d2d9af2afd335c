"""The timeline's lanes, pyramid and pixels, against brute force in the same browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.timeline_site import run

pytestmark = pytest.mark.browser

LANE = """
  const lane = new b.lanes.Lane(0, 0);
  const fillLane = (target, rows) => {
    target.append(spans.frameOf(0, rows).spans, Uint32Array.from(rows.keys()), [0]);
  };
  const fill = (rows) => fillLane(lane, rows);
"""
COLOURS = "const { rgb, edge } = b.timeline.colours;"


def test_a_rasters_coverage_and_presence_are_brute_forces(bench: Page) -> None:
    worst, absent, invented, columns = run(bench, LANE + COLOURS + """
      const rows = spans.manyRows(60000, 3);
      fill(rows);
      const W = 1200;
      let worst = 0, absent = 0, invented = 0, columns = 0;
      for (const zoom of [1, 7, 60, 900]) {
        const nsPerColumn = lane.lastEndNs / W / zoom;
        const first = Math.floor(lane.lastEndNs * 0.37 / nsPerColumn);
        const pixels = new Uint32Array(W);
        b.raster.rasterLane(lane, pixels, 0, first, first, first + W, nsPerColumn, rgb, edge);
        const busy = new Float64Array(W);
        for (const { start, duration } of rows) {
          const from = Math.max(start / nsPerColumn - first, 0), to = Math.min((start + duration) / nsPerColumn - first, W);
          for (let c = Math.floor(from); c < to; c++) busy[c] += Math.min(to, c + 1) - Math.max(from, c);
        }
        for (let c = 0; c < W; c++) {
          const opacity = pixels[c] >>> 24;
          const drawn = opacity === 255 ? 1 : Math.max(0, (opacity - 60) / 195);
          if (busy[c] > 1e-6 && opacity === 0) absent++;
          if (busy[c] < 1e-9 && opacity > 0) invented++;
          worst = Math.max(worst, Math.abs(drawn - Math.min(1, busy[c])));
          columns++;
        }
      }
      return [worst, absent, invented, columns];
    """)
    assert columns == 4800
    assert absent == 0 and invented == 0
    assert worst < 0.02


def test_a_rasters_colour_is_the_kind_that_fills_most_of_a_column(bench: Page) -> None:
    wrong, columns = run(bench, LANE + COLOURS + """
      const rows = spans.manyRows(40000, 5);
      fill(rows);
      const W = 1000, nsPerColumn = lane.lastEndNs / W;
      const pixels = new Uint32Array(W);
      b.raster.rasterLane(lane, pixels, 0, 0, 0, W, nsPerColumn, rgb, edge);
      const busy = new Float64Array(W * 32);
      for (const { start, duration, kind } of rows) {
        const from = start / nsPerColumn, to = Math.min((start + duration) / nsPerColumn, W);
        for (let c = Math.floor(from); c < to; c++) busy[c * 32 + kind] += Math.min(to, c + 1) - Math.max(from, c);
      }
      let wrong = 0;
      for (let c = 0; c < W; c++) {
        const shares = [...busy.subarray(c * 32, c * 32 + 32)];
        const kind = rgb.indexOf(pixels[c] & 0xffffff);
        // The pyramid keeps one kind a group, so among several of about the same share any may win.
        if (shares[kind] < 0.5 * Math.max(...shares)) wrong++;
      }
      return [wrong, W];
    """)
    assert wrong <= columns * 0.02


def test_waiting_is_not_drawn_as_work(bench: Page) -> None:
    drawn = run(bench, LANE + COLOURS + """
      fill([6, 1, 6, 6].map((kind, at) => ({ start: at * 100, duration: 100, kind })));
      const pixels = new Uint32Array(40);
      b.raster.rasterLane(lane, pixels, 0, 0, 0, 40, 10, rgb, edge);
      return [...pixels].map((pixel, at) => (pixel ? at : -1)).filter((at) => at >= 0);
    """)
    assert drawn == list(range(10, 20))


def test_late_spans_are_put_where_they_belong(bench: Page) -> None:
    same_pixels, same_rows, late, totals = run(bench, LANE + COLOURS + """
      const rows = spans.manyRows(9000, 11);
      fill(rows);
      const ordered = lane;
      const shuffled = new b.lanes.Lane(0, 0);
      const next = spans.dice(4);
      const mixed = rows.map((row) => [next(), row]).sort((one, other) => one[0] - other[0]).map(([, row]) => row);
      for (const row of mixed) fillLane(shuffled, [row]);
      const starts = (lane) => lane.chunks.flatMap((chunk) => [...chunk.start_ns.subarray(0, chunk.spans)]);
      const W = 700, nsPerColumn = ordered.lastEndNs / W / 9;
      const draw = (lane) => {
        const pixels = new Uint32Array(W);
        b.raster.rasterLane(lane, pixels, 0, 900, 900, 900 + W, nsPerColumn, rgb, edge);
        return pixels;
      };
      const sums = (lane) => {
        const totals = new Float64Array(32);
        lane.addTotals(1e6, 3e7, totals, new Float64Array(32));
        return String([...totals].map(Math.round));
      };
      // Groups of the pyramid differ, so coverage is compared, which is exact, and not the dominant colour.
      const one = draw(ordered), other = draw(shuffled);
      const samePixels = one.every((pixel, at) => Math.abs((pixel >>> 24) - (other[at] >>> 24)) <= 1);
      const sameRows = String(starts(ordered)) === String(starts(shuffled));
      return [samePixels, sameRows, shuffled.lateSpans, sums(ordered) === sums(shuffled)];
    """)
    assert same_rows and same_pixels and totals
    assert late > 8000


def test_an_append_leaves_full_chunks_where_they_are(bench: Page) -> None:
    kept, chunks = run(bench, LANE + """
      fill(spans.manyRows(5000, 2));
      const before = lane.chunks.slice(0, 4).map((chunk) => [chunk, chunk.start_ns, chunk.start_ns.buffer]);
      fill(spans.manyRows(50000, 2, { startNs: lane.lastEndNs }));
      const isKept = ([chunk, column, buffer], at) =>
        lane.chunks[at] === chunk && chunk.start_ns === column && column.buffer === buffer;
      return [before.every(isKept), lane.chunks.length];
    """)
    assert kept
    assert chunks == -(-55000 // 1024)


def test_totals_of_a_range_are_the_sums_of_its_parts(bench: Page) -> None:
    differences = run(bench, LANE + """
      const rows = spans.manyRows(20000, 8);
      fill(rows);
      const found = [];
      for (const [from, to] of [[0, 1e12], [123456, 9876543], [5e7, 5e7 + 10], [4e8, 9e8]]) {
        const totals = new Float64Array(32), wanted = new Float64Array(32);
        lane.addTotals(from, to, totals, new Float64Array(32));
        for (const { start, duration, kind } of rows) {
          wanted[kind] += Math.max(0, Math.min(to, start + duration) - Math.max(from, start));
        }
        found.push(Math.max(...totals.map((ns, kind) => Math.abs(ns - wanted[kind]))));
      }
      return found;
    """)
    assert max(differences) < 1e-3


def test_a_hit_is_the_span_under_the_pointer_or_the_nearest(bench: Page) -> None:
    wrong, near, gap, outside = run(bench, """
      const trace = new b.trace.Trace(1);
      const rows = spans.manyRows(5000, 21);
      trace.append(spans.frameOf(0, rows));
      let wrong = 0;
      const next = spans.dice(9);
      for (let i = 0; i < 2000; i++) {
        const at = next() * trace.lastEndNs;
        const under = rows.find(({ start, duration }) => start <= at && at < start + duration);
        const found = b.hit.hit(trace, 0, 0, at, 0);
        if ((found?.span?.startNs ?? -1) !== (under?.start ?? -1)) wrong++;
      }
      const sparse = new b.trace.Trace(1);
      const few = [[1000, 1], [5000, 6], [5100, 1]].map(([start, kind]) => ({ start, kind, duration: 100, step: 0 }));
      sparse.append(spans.frameOf(0, few));
      const near = b.hit.hit(sparse, 0, 0, 1150, 60);
      const gap = b.hit.hit(sparse, 0, 0, 3000, 60);
      return [wrong, near.span.startNs, [gap.gap.startNs, gap.gap.endNs], b.hit.hit(sparse, 0, 0, 9000, 60)];
    """)
    assert wrong == 0
    assert near == 1000
    assert gap == [1100, 5100]  # up to the next work: the recorded wait belongs to it
    assert outside is None


def test_a_collectives_members_are_in_its_group_not_in_another_of_the_same_name(bench: Page) -> None:
    found = run(bench, """
      const grid = [0, 1].flatMap((dp) => [0, 1].flatMap((cp) => [0, 1].map((tp) => ({ dp, ep: 0, pp: 0, cp, tp }))));
      const trace = new b.trace.Trace(8, grid);
      for (let rank = 0; rank < 8; rank++) {
        const rows = ["tp", "dp×cp", "everyone"].map((group, i) => (
          { start: 100 * i + rank, duration: 50, kind: 9, lane: 1, step: 0, sequence: 4, group }));
        trace.append(spans.frameOf(rank, rows));
      }
      const ranks = (at) => b.dependencies.members(trace, b.hit.hit(trace, 2, 1, at, 0).span).map((span) => span.rank);
      return [ranks(20), ranks(120), ranks(220)];
    """)
    assert found == [[2, 3], [0, 2, 4, 6], list(range(8))]


def test_an_address_has_words_as_long_as_there_is_room(bench: Page) -> None:
    assert run(bench, """
      const address = { dp: 1, ep: 0, pp: 0, cp: 3, tp: 2 };
      return [{}, { pp: 2 }, { pp: 2, tp: 4 }, { pp: 2, dp: 2, tp: 4 }, { ep: 2 }, { dp: 2, ep: 2 }].map(
        (sizes) => b.gutter.addressWords(address, sizes));
    """) == ["", "stage 0", "stage 0 · slice 2", "pp0 dp1 tp2", "experts 0", "dp1 ep0"]


def test_a_pan_by_the_shift_cache_equals_a_full_redraw_pixel_by_pixel(bench: Page) -> None:
    differing, pans, appended = run(bench, LANE + """
      const colours = b.timeline.colours;
      const rows = spans.manyRows(30000, 31);
      fill(rows.slice(0, 24000));
      const W = 900, next = spans.dice(77);
      const differs = (cached, first, nsPerColumn) => {
        const fresh = new b.rows.Rows(1);
        fresh.resize(W, 1);
        lane.changedFromNs[1] = Infinity;
        fresh.update(0, 1, () => lane, first, nsPerColumn, colours, 1e9);
        return cached.pixels.reduce((sum, pixel, at) => sum + (pixel !== fresh.pixels[at] ? 1 : 0), 0);
      };
      let differing = 0, pans = 0, appended = 0;
      for (const nsPerColumn of [97, 1234.5678, 25000 / 3, 150000.1]) {
        const cached = new b.rows.Rows(0);
        cached.resize(W, 1);
        let first = Math.floor((lane.lastEndNs * 0.8) / nsPerColumn) - W;
        for (let i = 0; i < 40; i++) {
          first += Math.floor((next() - 0.45) * 300);
          if (i % 7 === 3 && appended < 6000) { fill(rows.slice(24000 + appended, 24000 + appended + 250)); appended += 250; }
          cached.update(0, 1, () => lane, first, nsPerColumn, colours, 1e9);
          differing += differs(cached, first, nsPerColumn);
          pans++;
        }
      }
      return [differing, pans, appended];
    """)
    assert pans == 160 and appended > 2000
    assert differing == 0


def test_a_late_span_inside_a_cached_row_is_redrawn(bench: Page) -> None:
    before, after, differing = run(bench, LANE + """
      const colours = b.timeline.colours;
      fill([{ start: 0, duration: 1000, kind: 1 }, { start: 9000, duration: 500, kind: 2 }]);
      const draw = (rows) => { rows.resize(100, 1); rows.update(0, 1, () => lane, 0, 100, colours, 1e9); return rows.pixels; };
      const cached = new b.rows.Rows(0);
      const before = draw(cached)[45];
      fill([{ start: 4000, duration: 1000, kind: 4 }]);
      const now = draw(cached), fresh = draw(new b.rows.Rows(1));
      return [before, now[45] >>> 24, now.reduce((sum, pixel, at) => sum + (pixel !== fresh[at] ? 1 : 0), 0)];
    """)
    assert before == 0 and after == 255
    assert differing == 0


def test_rows_that_do_not_fit_the_budget_are_made_good_in_later_frames(bench: Page) -> None:
    done, frames = run(bench, """
      const trace = new b.trace.Trace(64);
      for (let rank = 0; rank < 64; rank++) trace.append(spans.frameOf(rank, spans.manyRows(400, rank)));
      const rows = new b.rows.Rows(0);
      rows.resize(500, 64);
      const update = () => rows.update(0, 64, (rank) => trace.lane(rank, 0), 0, 2e4, b.timeline.colours, 0).isDone;
      const first = update();
      let frames = 1;
      while (!update() && frames < 50) frames++;
      return [first, [frames, [...rows.nsPerColumn].every((ns) => ns === 2e4)]];
    """)
    assert done is False
    assert frames[0] < 15 and frames[1]
