"""The page's end of a search that the server does: walked in order over segments that overlap, at any time, come what may."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from playwright.sync_api import Page

pytestmark = pytest.mark.browser

# A server of `segments`: number → [[start_ns, lane], …], three an answer; `here.last` may grow, `here.isAway` refuses.
SERVER = """([segments, last]) => {
  const asked = [];
  const here = { last, isComplete: true, isAway: false, asked };
  const ask = {
    async count(text, after, signal) {
      asked.push(["count", text, after]);
      if (here.isAway) throw new Error("away");
      await new Promise((done) => setTimeout(done, 1));
      const through = Math.min(after + 3, here.last);
      const found = [];
      for (let number = after + 1; number <= through; number++) {
        const starts = (segments[number] ?? []).map(([start]) => start);
        if (starts.length) found.push([number, starts.length, Math.min(...starts), Math.max(...starts)]);
      }
      const { last, isComplete: complete } = here;
      return { through, last, complete, segments: found, lit: [[4, after, 2]], cell_ns: 100, unread: [] };
    },
    async matches(text, number, signal) {
      asked.push(["matches", text, number]);
      if (here.isAway) throw new Error("away");
      const rows = segments[number];
      const buffer = new ArrayBuffer(8 + 12 * rows.length);
      new DataView(buffer).setUint32(0, rows.length, true);
      new Float64Array(buffer, 8, rows.length).set(rows.map(([start]) => start));
      new Uint32Array(buffer, 8 + 8 * rows.length, rows.length).set(rows.map(([, lane]) => lane));
      return buffer;
    },
  };
  const whole = new window.bench.whole_search.WholeSearch(ask, () => here.changed?.());
  window.at = { whole, here, key: (match) => match && [match.startNs, match.rank * 4 + match.lane] };
}"""
DONE = "window.at.whole.isDone"


def segments_of(dice: random.Random, count: int, apart: int = 100) -> dict[int, list[list[int]]]:
    """Matches by segment, in order, of segments that reach into their neighbours; some hold none, some starts are shared."""
    return {
        number: [list(match) for match in sorted({
            (number * apart + dice.randrange(3 * apart), dice.randrange(8)) for _ in range(dice.choice([0, 1, 9]))
        })]
        for number in range(1, count + 1)
    }


def serve(page: Page, segments: dict[int, list[list[int]]]) -> None:
    page.evaluate(SERVER, [segments, len(segments)])


def test_matches_of_segments_that_overlap_are_walked_in_order_both_ways(bench: Page) -> None:
    dice = random.Random(3)
    segments = segments_of(dice, 40)
    wanted = sorted({tuple(match) for rows in segments.values() for match in rows})
    serve(bench, segments)
    bench.evaluate("() => window.at.whole.set('F0')")
    bench.wait_for_function(DONE)
    walk = """async (direction) => {
      const { whole, key } = window.at, found = [];
      const edge = { startNs: direction > 0 ? -Infinity : Infinity, rank: -1, lane: 0 };
      for (let at = await whole.next(direction, edge); at; at = await whole.next(direction, at)) found.push(key(at));
      return found;
    }"""
    assert [tuple(match) for match in bench.evaluate(walk, 1)] == wanted
    assert [tuple(match) for match in bench.evaluate(walk, -1)] == wanted[::-1]
    for _ in range(60):
        moment = dice.randrange(0, 4500)
        after, before = bench.evaluate("""async (startNs) => {
          const { whole, key } = window.at, from = { startNs, rank: 0, lane: 3 };
          return [key(await whole.next(1, from)), key(await whole.next(-1, from))];
        }""", moment)
        assert after == next((list(match) for match in wanted if match > (moment, 3)), None)
        assert before == next((list(match) for match in reversed(wanted) if match < (moment, 3)), None)


def test_the_place_of_a_span_is_how_many_come_before_it(bench: Page) -> None:
    segments = segments_of(random.Random(4), 12, apart=1000)
    every = sorted(tuple(match) for rows in segments.values() for match in rows)
    serve(bench, segments)
    bench.evaluate("() => window.at.whole.set('F0')")
    bench.wait_for_function(f"{DONE} && window.at.whole.count === {len(every)}")
    place = """async ([startNs, lane]) => {
      const { whole, here } = window.at, span = { startNs, rank: Math.floor(lane / 4), lane: lane % 4 };
      const told = new Promise((resolve) => (here.changed = resolve));
      const at = whole.placeOf(span);
      if (at >= 0) return at;
      await Promise.race([told, new Promise((done) => setTimeout(done, 50))]);
      await Promise.all([...whole.lists.values()].map(({ promise }) => promise));
      return whole.placeOf(span);
    }"""
    assert [bench.evaluate(place, list(match)) for match in every] == [every.index(match) for match in every]
    assert bench.evaluate(place, [every[5][0], 31]) == -1


def state(page: Page) -> dict[str, Any]:
    names = ["count", "isDone", "isGrowing", "share", "text"]
    return page.evaluate("(names) => Object.fromEntries(names.map((name) => [name, window.at.whole[name]]))", names)


def test_a_run_that_goes_on_is_looked_through_again_from_where_it_was_left(bench: Page) -> None:
    segments = {number: [[100 * number, 0]] for number in range(1, 9)}
    bench.clock.install()
    serve(bench, segments)
    bench.evaluate("() => { Object.assign(window.at.here, { last: 5, isComplete: false }); window.at.whole.set('F0'); }")
    bench.clock.run_for(100)
    bench.wait_for_function(DONE)
    assert state(bench) == {"count": 5, "isDone": True, "isGrowing": True, "share": 1, "text": "F0"}
    bench.evaluate("() => Object.assign(window.at.here, { last: 8, isComplete: true })")
    for _ in range(2):
        bench.evaluate("() => window.at.whole.note()")
    bench.clock.run_for(2500)
    bench.wait_for_function("!window.at.whole.isGrowing && !window.at.whole.isLooking")
    assert state(bench)["count"] == 8
    bench.evaluate("() => window.at.whole.note()")
    bench.clock.run_for(5000)
    assert [after for what, _, after in bench.evaluate("() => window.at.here.asked") if what == "count"] == [0, 3, 5]


def test_a_new_search_gives_up_the_one_before(bench: Page) -> None:
    serve(bench, {number: [[100 * number, 0]] for number in range(1, 31)})
    late = bench.evaluate("""async () => {
      const { whole, here } = window.at;
      whole.set("first");
      const match = whole.next(1, { startNs: 0, rank: 0, lane: 0 });
      whole.set("second");
      return await match;
    }""")
    assert late is None
    bench.wait_for_function(DONE)
    assert state(bench)["count"] == 30
    asked = bench.evaluate("() => window.at.here.asked")
    assert [one for one in asked if one[1] == "first"] == [["count", "first", 0]]
    bench.evaluate("() => window.at.whole.set('')")
    assert state(bench) == {"count": 0, "isDone": False, "isGrowing": True, "share": 0, "text": ""}


def test_keys_that_are_pressed_while_the_server_is_away_work_once_it_is_back(bench: Page) -> None:
    serve(bench, {number: [[100 * number, 0]] for number in range(1, 4)})
    bench.evaluate("() => window.at.whole.set('F0')")
    bench.wait_for_function(DONE)
    went = bench.evaluate("""async () => {
      const { whole, here, key } = window.at, went = [];
      whole.goTo = (match) => went.push(key(match));
      const edge = { startNs: -Infinity, rank: -1, lane: 0 };
      here.isAway = true;
      whole.walk(1, edge, edge);
      await whole.walking;
      const isSaid = whole.error !== null;
      here.isAway = false;
      for (let press = 0; press < 4; press++) whole.walk(1, edge, edge);
      await whole.walking;
      return [isSaid, whole.error === null, went];
    }""")
    assert went == [True, True, [[100, 0], [200, 0], [300, 0], [100, 0]]], json.dumps(went)
