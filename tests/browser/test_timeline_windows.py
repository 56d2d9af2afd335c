"""A run that is longer than the page holds: drawn from cells and windows of the server, against brute force over its spans."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from tests.browser.stored_windows import Answers, StoredRun
from tests.browser.timeline_site import run as in_page
from trainer.trace import windows
from trainer.trace.kinds import Kind

pytestmark = pytest.mark.browser

SPANS = 200_000
MS = 1_000_000


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    return StoredRun(tmp_path_factory.mktemp("store"), SPANS)


@pytest.fixture
def answers(page: Page, timeline_address: str, stored: StoredRun) -> Iterator[Answers]:
    page.goto(f"{timeline_address}/timeline.html?ranks=8")
    page.wait_for_function("window.bench")
    answers = Answers(page, stored)
    yield answers
    answers.end()
    page.unroute_all(behavior="ignoreErrors")


def run(page: Page, body: str) -> Any:
    """As JSON: what Playwright itself makes of a hundred thousand spans takes seconds."""
    found = f"(async () => {{ const {{ timeline }} = b; const w = b.windowed; {body} }})()"
    return json.loads(in_page(page, f"return {found}.then((found) => JSON.stringify(found ?? null));"))


def record(page: Page, rows: np.ndarray[Any, Any]) -> None:
    """Put rows of StoredRun.spans into `recorded`, in the order of their ends, as ranks tell them."""
    in_order = rows[np.argsort(rows[:, 4], kind="stable")]
    page.evaluate("(rows) => { window.recorded = JSON.parse(rows); }", json.dumps(in_order.tolist()))


def touching(rows: np.ndarray[Any, Any], stretches: list[list[float]]) -> list[list[int]]:
    """Those of StoredRun.of that reach into any of the stretches."""
    start, end = rows[:, 0], rows[:, 0] + np.maximum(rows[:, 1], 1)
    return rows[np.any([(start < high) & (end > low) for low, high in stretches], axis=0)].tolist()


def begin(page: Page, stored: StoredRun, more: str = "") -> None:
    run(page, f"""
      timeline.follow(false);
      window.reader = w.openReader(timeline, {{ sealed: {json.dumps(stored.sealed)}, {more} }});
      timeline.end();
      timeline.view.fit();
      reader.look();
      await w.settled(reader);
    """)


def go(page: Page, from_ns: float, to_ns: float) -> None:
    run(page, f"timeline.setRange({from_ns}, {to_ns}); await w.settled(reader);")


@pytest.mark.parametrize("share", [1.0, 0.6])
def test_cells_show_all_that_was_done_and_how_busy_it_was(page: Page, answers: Answers, stored: StoredRun, share: float) -> None:
    """A column a cell: what is drawn is there, what is there is drawn, coverage is right to 2 %."""
    begin(page, stored)
    end_ns = stored.sealed["end_ns"]
    go(page, end_ns * 0.1, end_ns * (0.1 + 0.8 * share))
    cell_ns = int(run(page, "return Math.min(...timeline.trace.cover.tiles.map(({ cellNs }) => cellNs));"))
    assert run(page, "return timeline.trace.spans") == 0
    worst, first, count = 0.0, int(end_ns * 0.15) // cell_ns, 200
    for rank, lane in [(0, 0), (3, 0), (7, 1), (2, 2)]:
        drawn = np.array(run(page, f"return w.drawn(timeline, {rank}, {lane}, {first}, {count}, {cell_ns});"))
        busy = stored.busy(rank, lane, first, count, cell_ns)
        assert ((drawn > 0) == (busy > 0)).all()
        worst = max(worst, float(np.abs(np.clip((drawn - 60) / 195, 0, 1) - np.minimum(busy, 1))[busy > 0].max()))
    assert 0 < worst < 0.02


@pytest.mark.parametrize("scale", [0.31, 0.77, 1.9, 3.3])
def test_no_span_vanishes_at_any_scale(page: Page, answers: Answers, stored: StoredRun, scale: float) -> None:
    """`scale`: a column's width in cells, of the cells that are there."""
    begin(page, stored)
    cell_ns = run(page, "return timeline.trace.cover.tiles[0].cellNs")
    ns_per_column = cell_ns * scale
    first, count = int(stored.sealed["end_ns"] * 0.4 / ns_per_column), 150
    drawn = np.array(run(page, f"return w.drawn(timeline, 1, 2, {first}, {count}, {ns_per_column});"))
    reach = int(np.ceil(1 / scale)) + 1  # a cell is known as a whole: its span may lie anywhere in it
    seen = 0
    for start, duration, _ in stored.of(1, 2).tolist():
        low, high = int(start / ns_per_column) - first, int((start + duration) / ns_per_column) - first
        if low - reach < 0 or high + reach >= count:
            continue
        assert drawn[low - reach : high + reach + 1].any()
        seen += 1
    assert seen > 100


def test_windows_hold_every_span_once_wherever_one_has_been(page: Page, answers: Answers, stored: StoredRun) -> None:
    """Over borders of what is in memory, in and out, with old windows leaving: every lane holds what touches its stretches."""
    begin(page, stored, "mostBytes: 3e6")
    end_ns = stored.sealed["end_ns"]
    ways = [(0.3, 120), (0.31, 120), (0.33, 60), (0.6, 150), (0.58, 150), (0.3, 20), (0.29, 100), (0.9, 200), (0.31, 90)]
    for at, width in ways:
        go(page, end_ns * at, end_ns * at + width * MS)
        merged = run(page, "return timeline.trace.cover.held.merged")
        assert any(low <= end_ns * at and high >= end_ns * at + width * MS for low, high in merged)
        total = 0
        for rank in range(8):
            for lane in range(4):
                wanted = touching(stored.of(rank, lane), merged)
                assert run(page, f"return w.held(timeline, {rank}, {lane});") == wanted
                total += len(wanted)
        assert run(page, "return timeline.trace.spans") == total > 0


def test_what_is_read_is_bounded_however_far_one_goes(page: Page, answers: Answers, stored: StoredRun) -> None:
    begin(page, stored, "mostBytes: 4e6")
    end_ns, most, spans = stored.sealed["end_ns"], 0.0, 0
    for at in np.linspace(0.05, 0.9, 12):
        go(page, end_ns * at, end_ns * at + 60 * MS)
        most = max(most, run(page, "return reader.bytes"))
        spans = max(spans, run(page, "return timeline.trace.spans"))
    near = run(page, """
      const near = new Set([...reader.pinned, ...reader.near].map(({ key }) => key));
      return [...reader.entries.values()].filter(({ key }) => near.has(key)).reduce((sum, { bytes }) => sum + bytes, 0);
    """)
    assert len(answers.queries) > 20
    assert most <= max(4e6, 1.5 * near) and spans < SPANS / 3


def test_cells_stay_until_spans_come_and_the_page_says_that_it_reads(page: Page, answers: Answers, stored: StoredRun) -> None:
    begin(page, stored)
    at = stored.sealed["end_ns"] * 0.5
    states, drawn = run(page, f"""
      const states = [];
      timeline.addEventListener("reading", () => states.push(reader.status));
      timeline.setRange({at}, {at + 40 * MS});
      const scene = timeline.scene();
      const shown = () => w.drawn(timeline, 0, 0, scene.firstColumn, scene.columns, scene.nsPerColumn).filter(Boolean).length;
      const coarse = shown();
      await w.settled(reader);
      return [states, [coarse, shown()]];
    """)
    assert states == ["reading", ""]
    assert min(drawn) > 50
    found = run(page, f"""
      const {{ trace }} = timeline;
      const found = b.hit.hit(trace, 0, 0, {at + 20 * MS}, {20 * MS});
      return [found?.span?.rank, trace.holds({at}, {at + 40 * MS}), trace.holds(0, {at})];
    """)
    assert found == [0, True, False]


def test_a_request_that_fails_is_said_and_tried_again(page: Page, answers: Answers, stored: StoredRun) -> None:
    begin(page, stored)
    answers.failures = 2
    at = stored.sealed["end_ns"] * 0.7
    states = run(page, f"""
      const states = [];
      const {{ requests }} = reader;
      timeline.addEventListener("reading", () => states.push([reader.status, requests.error?.words ?? "", requests.retryInMs]));
      timeline.setRange({at}, {at + 5 * MS});
      await w.settled(reader);
      return states;
    """)
    assert [state for state, _, _ in states if state] in (["reading", "failed"], ["reading", "failed", "reading"])
    assert states[-1][0] == ""
    assert states[1][1] == "The store is being moved." and states[1][2] >= 500
    assert run(page, f"return timeline.trace.holds({at}, {at + 5 * MS})") is True


def test_the_newest_view_wins_and_requests_of_older_ones_are_given_up(page: Page, answers: Answers, stored: StoredRun) -> None:
    begin(page, stored)
    end_ns = stored.sealed["end_ns"]
    answers.stalls = 4  # as many as run at once
    run(page, f"timeline.setRange({end_ns} * 0.1, {end_ns} * 0.1 + {10 * MS});")
    page.wait_for_function("window.reader.requests.running.size > 1")
    stalled, answers.stalls = run(page, "return reader.requests.running.size"), 0
    go(page, end_ns * 0.8, end_ns * 0.8 + 10 * MS)
    assert run(page, "return timeline.trace.holds(timeline.view.fromNs, timeline.view.toNs)") is True
    assert run(page, "return reader.givenUp.length") == stalled > 1


def test_a_view_that_moves_on_and_on_is_not_asked_for_at_every_frame(page: Page, answers: Answers, stored: StoredRun) -> None:
    begin(page, stored)
    end_ns, before = stored.sealed["end_ns"], len(answers.queries)
    run(page, f"""
      for (let at = 0; at < 60; at++) {{
        timeline.setRange({end_ns} * (0.1 + at * 0.01), {end_ns} * (0.1 + at * 0.01) + {10 * MS});
        await new Promise((done) => requestAnimationFrame(done));
      }}
      await w.settled(reader);
    """)
    assert run(page, "return timeline.trace.holds(timeline.view.fromNs, timeline.view.toNs)") is True
    assert len(answers.queries) - before < 60


def test_a_figure_says_what_it_is_made_of(page: Page, answers: Answers, stored: StoredRun) -> None:
    """Totals from cells are right within 2 % of the range, lane by lane."""
    begin(page, stored)
    low, high = int(stored.sealed["end_ns"] * 0.2), int(stored.sealed["end_ns"] * 0.7)
    totals = run(page, f"return timeline.trace.ranks.map((_, rank) => [...timeline.trace.totals({low}, {high}, rank).totalNs]);")
    for rank in range(8):
        spans = stored.spans[(stored.spans[:, 0] == rank) & (stored.spans[:, 1] < 3) & (stored.spans[:, 2] != Kind.WAIT)]
        busy = np.maximum(0, np.minimum(spans[:, 4], high) - np.maximum(spans[:, 3], low)).sum()
        assert sum(totals[rank]) == pytest.approx(busy, rel=0.02)


def test_a_live_run_that_outgrows_the_page_keeps_its_latest_spans_and_cells_of_the_rest(
    page: Page, answers: Answers, stored: StoredRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "FEW_SPANS", 2_000)  # in proportion to the page's budget here
    record(page, stored.spans)
    most, blanks, following, leaves = run(page, """
      window.reader = w.openReader(timeline, { mostSpans: 60_000 });
      timeline.view.setRange(0, 1e9);
      let most = 0, leaves = 0, blanks = 0;
      for (let at = 0; at < recorded.length; at += 4000) {
        const now = recorded.slice(at, at + 4000);
        for (let rank = 0; rank < 8; rank++) {
          timeline.append([spans.frameOf(rank, now.filter((row) => row[0] === rank)
            .map(([, lane, kind, start, end]) => ({ lane, kind, start, duration: end - start })))]);
        }
        most = Math.max(most, timeline.trace.spans);
        const { held, tiles } = timeline.trace.cover;
        if (!timeline.trace.isWhole && held.merged.at(-1)[0] > leaves) {
          leaves = held.merged.at(-1)[0];
          for (const [from, to] of held.missing(0, leaves)) {
            let at = from; // what left memory is in cells, from end to end
            const inOrder = [...tiles].sort((one, other) => one.fromNs - other.fromNs);
            for (const tile of inOrder) if (tile.fromNs <= at) at = Math.max(at, tile.toNs);
            blanks += at < to;
          }
        }
        await w.settled(reader);
      }
      return [most, blanks, timeline.isFollowing, leaves];
    """)
    end_ns = stored.sealed["end_ns"]
    assert most <= 60_000 * 1.25 and blanks == 0 and following
    assert leaves > end_ns / 2
    drawn = np.array(run(page, f"return w.drawn(timeline, 0, 0, 0, 300, {end_ns / 300});"))
    assert (drawn[2:298] > 0).all()  # every step has work of rank 0, and a column holds several
    go(page, end_ns * 0.2, end_ns * 0.2 + 30 * MS)
    assert run(page, f"return timeline.trace.holds({end_ns * 0.2}, {end_ns * 0.2 + 30 * MS})") is True


def test_a_page_that_opens_in_the_middle_of_a_live_run_holds_its_end_and_reads_the_rest(
    page: Page, answers: Answers, stored: StoredRun
) -> None:
    """What comes live is held from a time on; what a slower rank tells late of the time before is left to windows."""
    from_ns = int(stored.sealed["end_ns"] * 0.8)
    told = stored.spans[stored.spans[:, 4] > from_ns - 20 * MS]
    sealed = stored.sealed | {"held_from_ns": from_ns, "spans_before": len(stored.spans) - len(told)}
    record(page, told)
    run(page, f"""
      timeline.follow(false);
      window.reader = w.openReader(timeline, {{ sealed: {json.dumps(sealed)} }});
      for (let rank = 0; rank < 8; rank++) {{
        timeline.append([spans.frameOf(rank, recorded.filter((row) => row[0] === rank)
          .map(([, lane, kind, start, end]) => ({{ lane, kind, start, duration: end - start }})))]);
      }}
      await w.settled(reader);
    """)
    for low in (from_ns - 100 * MS, from_ns - 40 * MS, from_ns - 300 * MS):
        go(page, low, low + 90 * MS)
        merged = run(page, "return timeline.trace.cover.held.merged.map(([from, to]) => [from, Math.min(to, 1e18)])")
        assert any(begin <= low and end >= low + 90 * MS for begin, end in merged)
        for rank in range(8):
            for lane in range(4):
                wanted = touching(stored.of(rank, lane), merged)
                assert run(page, f"return w.held(timeline, {rank}, {lane});") == wanted
    assert run(page, "return timeline.trace.total") == len(stored.spans)


def test_what_is_not_settled_yet_is_asked_for_again(page: Page, answers: Answers, stored: StoredRun) -> None:
    answers.settled_ns = 0.0
    run(page, f"""
      timeline.follow(false);
      window.reader = w.openReader(timeline, {{ sealed: {json.dumps(stored.sealed)} }});
    """)
    page.wait_for_function("window.reader.requests.later.size > 0")
    assert run(page, "return [timeline.trace.spans, timeline.trace.cover.tiles.length, reader.status]") == [0, 0, "reading"]
    answers.settled_ns = None
    page.wait_for_function("window.reader.status === '' && window.bench.timeline.trace.cover.tiles.length > 0")
