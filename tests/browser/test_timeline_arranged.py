"""How lanes are arranged, found and compared: grouping, search, the longest chain, marks, the sheet."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.browser.timeline_site import run

pytestmark = pytest.mark.browser

GRID = """
  const grid = [0, 1].flatMap((dp) => [0, 1, 2].map((pp) => ({ dp, ep: 0, pp, cp: 0, tp: 0 })));
  const stages = [[0], [1], [2]];
  const arrange = (more) => b.arrange.arrange({ ranks: 6, grid, stages, ...more });
"""


def test_ranks_are_grouped_by_an_axis_and_every_one_is_there_once(bench: Page) -> None:
    by_stage, by_copy, ungrouped = run(bench, GRID + """
      return ["pp", "dp", ""].map((by) => arrange({ by }).map(({ label, ranks }) => [label, ranks]));
    """)
    assert by_stage == [["stage 0", [0, 3]], ["stage 1", [1, 4]], ["stage 2", [2, 5]]]
    assert by_copy == [["copy 0", [0, 1, 2]], ["copy 1", [3, 4, 5]]]
    assert ungrouped == [["", [0, 1, 2, 3, 4, 5]]]


def test_ranks_are_grouped_by_the_servers_and_racks_that_hold_them(bench: Page) -> None:
    axes, by_server, by_rack = run(bench, GRID + """
      const places = { server: [0, 0, 1, 1, 2, 2], rack: [0, 0, 0, 0, 1, 1] };
      const names = (more) => b.arrange.axesOf({ dp: 2, pp: 3 }, more).map(({ axis }) => axis);
      const groups = (by) => arrange({ by, places }).map(({ key, label, ranks }) => [key, label, ranks]);
      return [[names({}), names(places), names({ server: [0, 0], rack: [0, 0] })], groups("server"), groups("rack")];
    """)
    assert axes == [["pp", "dp"], ["pp", "dp", "server", "rack"], ["pp", "dp"]]
    assert by_server == [["server0", "server 0", [0, 1]], ["server1", "server 1", [2, 3]], ["server2", "server 2", [4, 5]]]
    assert by_rack == [["rack0", "rack 0", [0, 1, 2, 3]], ["rack1", "rack 1", [4, 5]]]


def test_spans_of_a_rank_with_several_stages_say_which_where_there_is_room(bench: Page) -> None:
    wide, narrow, plain = run(bench, """
      const { timeline } = b;
      const rows = [0, 1, 2].map((at) => ({ start: at * 1e8, duration: 9e7, kind: 1, step: 0, microBatch: at }));
      const frame = spans.frameOf(0, rows);
      frame.spans.stage = Int16Array.from([0, 4, 0]);
      timeline.append([frame]);
      timeline.setRange(0, 3e8); // a span is some 300 px wide
      const written = (letterPx, hasChunks) => {
        const sprites = { get: (text) => ({ canvas: text, widthPx: letterPx * text.length, heightPx: 16 }) };
        timeline.hasChunks = hasChunks;
        const shown = [];
        const context = { drawImage: (text) => shown.push(text), fillRect() {}, beginPath() {}, roundRect() {}, fill() {} };
        b.labels.drawLabels(context, timeline.scene(), sprites, sprites, null);
        return shown.filter((text) => !text.includes("ms"));
      };
      return [written(8, true), written(90, true), written(8, false)];
    """)
    assert wide == ["F0 s0", "F1 s4", "F2 s0"]
    assert narrow == plain == ["F0", "F1", "F2"]


def test_the_rank_that_worked_longest_comes_first_in_its_group(bench: Page) -> None:
    assert run(bench, GRID + """
      const lateness = b.arrange.latenessOf([10, 20, 30, 40, 20, 10]);
      return [lateness, arrange({ by: "dp", lateness }).map(({ ranks }) => ranks)];
    """) == [[-10, 0, 10, 20, 0, -10], [[2, 1, 0], [3, 4, 5]]]


def test_a_folded_group_is_a_strip_in_which_each_rank_is_still_hit(bench: Page) -> None:
    before, after, found, header = run(bench, GRID + """
      const layout = (folded) => new b.layout.Layout(arrange({ by: "dp", folded: new Set(folded) }));
      const open = layout([]), folded = layout(["dp0"]);
      const slot = folded.slot(1);
      const y = folded.topOf(1) + slot.heightPx / 2;
      return [open.contentPx, folded.contentPx, folded.laneAt(y, 0), folded.headerAt(b.layout.RULER_PX + 5, 0).key];
    """)
    assert after < before
    assert found == {"rank": 1, "lane": 0}
    assert header == "dp0"


QUERY = """
  const trace = new b.trace.Trace(4);
  for (let rank = 0; rank < 4; rank++) {
    const rows = spans.manyRows(3000, rank + 1, { step: 2 });
    rows.push({ start: rows.at(-1).start + 1e7, duration: 6e6, kind: 9, lane: 1, step: 3, group: "dp", bytes: 4e6 });
    trace.append(spans.frameOf(rank, rows));
  }
  const scan = (text) => {
    const scheduler = { register(name, paint) { this.paint = paint; }, ask() { while (this.paint()); } };
    const search = new b.search.Search(trace, scheduler, () => {});
    search.set(text);
    return search;
  };
  const all = [];
  for (const lane of trace.ranks.flat()) {
    for (let place = lane.firstEndingAfter(-1); place < lane.end; place = lane.next(place)) all.push(lane.spanAt(place));
  }
"""


def test_a_search_finds_what_a_look_at_every_span_finds(bench: Page) -> None:
    found, wanted = run(bench, QUERY + """
      const cases = [
        ["kind:all_reduce", (s) => s.kind === 9], ["dur:>50us rank:1-2", (s) => s.durationNs > 5e4 && s.rank >= 1 && s.rank <= 2],
        ["kind:forward mb:3", (s) => s.kind === 1 && s.microBatch === 3], ["F3", (s) => s.kind === 1 && s.microBatch === 3],
        ["size:>1MB lane:collective", (s) => s.kind === 9], ["name:dp", (s) => s.kind === 9], ["rank:9", () => false],
        ["dur:10us-20us", (s) => s.durationNs >= 1e4 && s.durationNs <= 2e4],
      ];
      return [cases.map(([text]) => scan(text).count), cases.map(([, test]) => all.filter(test).length)];
    """)
    assert found == wanted
    assert wanted[0] == 4 and wanted[1] > 500


def test_a_query_that_cannot_be_read_says_what_would_do(bench: Page) -> None:
    words = run(bench, QUERY + """
      return ["dur:soon", "kind:banana", "colour:red", "rank:x", "rank:"].map((text) => scan(text).query.error);
    """)
    assert words[0] == 'dur: takes a length such as >5ms or 2ms-4ms; "soon" is none'
    assert '"banana" is none of forward, backward' in words[1]
    assert "colour: is no field; there are kind:" in words[2]
    assert '"x" is none' in words[3]
    assert words[4] == "rank: needs something after it"


def test_matches_are_walked_in_time_over_all_lanes_and_back(bench: Page) -> None:
    forward, backward, count, places = run(bench, QUERY + """
      const search = scan("kind:optimizer dur:>100us");
      const walk = (direction, from) => {
        const found = [];
        for (let at = search.next(direction, from); at; at = search.next(direction, at)) found.push(at);
        return found;
      };
      const forward = walk(1, { startNs: -Infinity, rank: -1, lane: 0 });
      const backward = walk(-1, { startNs: Infinity, rank: 99, lane: 0 });
      const key = ({ rank, startNs }) => `${rank} ${startNs}`;
      const sorted = forward.every((span, at) => at === 0 || span.startNs >= forward[at - 1].startNs);
      return [forward.map(key), backward.map(key).reverse(), search.count, sorted && search.placeOf(forward[5]) === 5];
    """)
    assert len(forward) == count > 100
    assert forward == backward
    assert places


def test_a_search_goes_on_with_spans_that_come_later(bench: Page) -> None:
    assert run(bench, QUERY + """
      const search = scan("kind:all_reduce");
      const before = search.count;
      for (const start of [9e9, 8e9]) { // the second one is late
        trace.append(spans.frameOf(2, [{ start, duration: 5, kind: 9, lane: 1, step: 4, group: "dp" }]));
        search.note();
      }
      return [before, search.count];
    """) == [4, 6]


CHAIN = """
  const trace = new b.trace.Trace(2);
  const F = 1, B = 2, SEND = 7, RECEIVE = 8;
  const w = (kind, from, to, microBatch) => ({ kind, start: from * 1e6, duration: (to - from) * 1e6, step: 0, microBatch });
  const t = (kind, from, to, microBatch, peer) => ({ ...w(kind, from, to, microBatch), lane: 2, peer });
  trace.append(spans.frameOf(0, [w(F, 0, 10, 0), w(F, 10, 20, 1), w(B, 46, 66, 0),
    t(SEND, 10, 11, 0, 1), t(SEND, 20, 21, 1, 1), t(RECEIVE, 43, 45, 0, 1)]));
  trace.append(spans.frameOf(1, [w(F, 13, 23, 0), w(B, 23, 43, 0), w(F, 43, 53, 1),
    t(RECEIVE, 10, 12, 0, 0), t(RECEIVE, 20, 22, 1, 0), t(SEND, 43, 44, 0, 0)]));
  const path = b.path.criticalPath(trace, 0);
"""


def test_the_longest_chain_of_a_step_is_followed_back_to_its_first_work(bench: Page) -> None:
    chain, total, length = run(bench, CHAIN + """
      const total = path.links.reduce((sum, { ownNs, gapNs }) => sum + ownNs + gapNs, 0);
      return [path.links.map(({ span, gapNs }) => [span.rank, span.kind, gapNs / 1e6]), total, path.endNs - path.startNs];
    """)
    assert chain == [[0, 1, 0], [1, 1, 3], [1, 2, 0], [0, 2, 3]]
    assert total == length == 66e6


def test_marks_are_kept_in_the_order_of_time_and_found_under_the_pointer(bench: Page) -> None:
    kinds, found = run(bench, """
      const { timeline } = b;
      const frame = spans.frameOf(0, spans.manyRows(50, 3));
      frame.strings.push("checkpoint", "fault", "zero", "of step 4");
      const at = (word) => frame.strings.indexOf(word);
      const kind = ["checkpoint", "fault", "zero"].map(at);
      frame.marks = { length: 3, time_ns: [9e5, 3e5, 0], step: [4, -1, -1], kind, text: [at("of step 4"), 0, 0] };
      timeline.append([frame]);
      timeline.setRange(0, 1e6);
      const scene = timeline.scene();
      const under = b.marks.marksAt(timeline.trace, scene, { x: scene.x(9e5), y: b.layout.RULER_PX - 6 });
      return [timeline.trace.marks.map(({ kind }) => kind), under.map(b.marks.wordsOf)];
    """)
    assert kinds == ["fault", "checkpoint"]
    assert found == ["checkpoint: of step 4 (rank 0, step 4)"]


def test_a_sheet_that_was_panned_and_fed_equals_one_drawn_anew_pixel_by_pixel(bench: Page) -> None:
    differing, frames = run(bench, """
      const { timeline } = b;
      const next = spans.dice(12);
      const rows = spans.manyRows(6000, 4, { longestNs: 3e6 });
      rows.forEach((row, at) => (row.step = Math.floor(at / 400)));
      timeline.append([spans.frameOf(0, rows.slice(0, 5000)), spans.frameOf(2, rows.slice(0, 4000))]);
      const painter = timeline.painter;
      painter.budgetMs = Infinity;
      const pixels = () => {
        painter.paint(timeline.scene(), { addresses: [], shares: [], hoveredRank: -1 });
        return painter.context.getImageData(0, 0, painter.canvas.width, painter.canvas.height).data.slice();
      };
      let differing = 0, frames = 0, fed = 5000;
      for (const [part, pans] of [[0.3, 25], [0.06, 15]]) {
        timeline.setRange(timeline.trace.lastEndNs * 0.6, timeline.trace.lastEndNs * (0.6 + part));
        for (let at = 0; at < pans; at++) {
          pixels(); // the ring holds this view
          timeline.panPx((next() - 0.4) * 300);
          if (at % 5 === 2) { timeline.append([spans.frameOf(0, rows.slice(fed, fed + 100))]); fed += 100; }
          const kept = pixels();
          kept.wasKept = painter.sheet.key !== "";
          painter.rows.forget();
          const anew = pixels();
          for (let i = 0; i < kept.length; i++) if (kept[i] !== anew[i]) { differing++; break; }
          if (kept.wasKept && painter.sheet.key === "") frames++;
        }
      }
      return [differing, frames];
    """)
    assert frames == 40
    assert differing == 0
