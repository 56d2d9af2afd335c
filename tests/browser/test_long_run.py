"""A stored run of more spans than a page holds, from the real server: opened by cells, read by windows, true in what it says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from dashboard.bench.stores import BenchRun, fill, make_runs, server
from dashboard.bench.synthetic import Shape
from dashboard.live.opening import IN_PAGE_SPANS
from tests.browser.static_server import until
from trainer.trace.search import matches
from trainer.trace.span_query import parse
from trainer.trace.store import StoreReader

pytestmark = [pytest.mark.browser, pytest.mark.timed]

SHAPE = Shape(copies=16, stages=8)
MOST_HELD = 400_000  # of what is in sight and beside it
IS_READ = "window.lockstep?.complete && !window.lockstep.timeline.camera.glide && window.lockstep.reading() === ''"
WATCH_SHIFTS = """
  window.shifts = [];
  const unasked = (list) => list.getEntries().filter((one) => !one.hadRecentInput);
  new PerformanceObserver((list) => window.shifts.push(...unasked(list).map(({ value }) => value)))
    .observe({ type: "layout-shift", buffered: true });
"""


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[BenchRun, int]]:
    home = tmp_path_factory.mktemp("home")
    (made,) = make_runs(home, 1, SHAPE)
    fill(made.store, SHAPE, IN_PAGE_SPANS + 1, has_figures=True)
    with server(home) as port:
        yield made, port


@pytest.fixture
def opened(page: Page, long_run: tuple[BenchRun, int]) -> Iterator[Page]:
    run, port = long_run
    trouble: list[str] = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda message: trouble.append(message.text) if "Content Security Policy" in message.text else None)
    page.add_init_script(WATCH_SHIFTS)
    page.goto(f"http://127.0.0.1:{port}/s/{run.token}/")
    until(page, f"{IS_READ} && window.lockstep.spans")  # before its first frame a page has not begun to read
    yield page
    assert not trouble, trouble


def see(page: Page, from_ns: float, to_ns: float) -> None:
    page.evaluate("([from, to]) => window.lockstep.setView(from, to)", [from_ns, to_ns])
    until(page, f"{IS_READ} && (window.lockstep.view().fromNs - {from_ns}) < 1000")


def held(page: Page) -> dict[str, Any]:
    return page.evaluate("() => ({ spans: window.lockstep.spans, total: window.lockstep.timeline.trace.total })")


def test_it_opens_on_its_last_steps_and_says_how_many_spans_there_are(opened: Page, long_run: Any, picture: Any) -> None:
    run, _ = long_run
    spans = StoreReader(run.store).manifest.spans
    assert held(opened)["total"] == spans and 0 < held(opened)["spans"] < MOST_HELD
    expect(opened.locator('[data-part="range"]')).to_contain_text(f"{spans:,} spans")
    expect(opened.locator('[data-part="empty"]')).to_be_hidden()
    assert opened.evaluate("() => window.lockstep.stats.missing_spans") == 0
    assert opened.evaluate("() => window.lockstep.timeline.painter.labels") > 20
    picture(opened, "last-steps")


def test_the_whole_of_it_is_drawn_and_a_window_of_it_is_exact(opened: Page, long_run: Any, picture: Any) -> None:
    run, _ = long_run
    reader = StoreReader(run.store)
    head = reader.manifest
    see(opened, head.start_ns, head.end_ns)
    expect(opened.locator('[data-part="totals-title"]')).to_have_text("Range in sight, all ranks · about")
    drawn = opened.evaluate("""() => {
      const { timeline } = window.lockstep, { rows, canvas } = timeline.painter, scene = timeline.scene();
      const at = scene.firstSlot * timeline.layout.lanes.length * rows.columns;
      return rows.pixels.subarray(at, at + rows.columns).filter(Boolean).length / rows.columns;
    }""")
    assert drawn > 0.9
    picture(opened, "whole")
    row = next(row for row in reader.steps() if row["step"] == 40)
    see(opened, row["work_start_ns"], row["work_end_ns"])
    expect(opened.locator('[data-part="totals-title"]')).to_have_text("Range in sight, all ranks")
    busy = opened.evaluate("""([from, to]) => Array.from(window.lockstep.timeline.trace.ranks,
      (_, rank) => window.lockstep.timeline.trace.totals(from, to, rank).totalNs.slice(1, 5).reduce((sum, ns) => sum + ns, 0))""",
                           [row["work_start_ns"], row["work_end_ns"]])
    assert busy == pytest.approx(row["busy_ns"], rel=1e-9)
    assert held(opened)["spans"] < MOST_HELD
    picture(opened, "one-step")


def test_spans_that_were_read_can_be_chosen_and_listed(opened: Page, long_run: Any) -> None:
    run, _ = long_run
    row = next(row for row in StoreReader(run.store).steps() if row["step"] == 60)
    see(opened, row["work_start_ns"], row["work_end_ns"])
    surface = opened.locator('[data-part="scroller"]')
    surface.focus()
    opened.keyboard.press("ArrowRight")
    expect(opened.locator('[data-part="details"]')).to_contain_text("step 60")
    opened.keyboard.press("]")
    expect(opened.locator('[data-part="details"]')).to_contain_text("step 60")
    until(opened, "location.hash.includes('span=')")
    address = opened.url
    opened.goto("about:blank")
    opened.goto(address)
    until(opened, f"{IS_READ} && window.lockstep.timeline.selected")
    expect(opened.locator('[data-part="details"]')).to_contain_text("step 60")


def of_the_run(run: BenchRun, text: str) -> list[tuple[float, int, int]]:
    """(start_ns, rank, lane) of every match, in the order in which they are walked."""
    reader, found = StoreReader(run.store), []
    for segment in reader.segments:
        starts, lanes = matches(reader, parse(text), segment.number)
        found += zip(starts.tolist(), (lanes // 4).tolist(), (lanes % 4).tolist(), strict=True)
    return sorted(found)


def chosen(page: Page) -> tuple[float, int, int]:
    until(page, f"{IS_READ} && window.lockstep.timeline.selected")
    return tuple(page.evaluate("() => (({ startNs, rank, lane }) => [startNs, rank, lane])(window.lockstep.timeline.selected)"))


def test_a_search_looks_through_the_whole_run_and_is_walked_with_the_same_keys(opened: Page, long_run: Any, picture: Any) -> None:
    run, _ = long_run
    wanted = of_the_run(run, "dur:>850us kind:backward rank:5,77")
    assert len(wanted) > 50
    opened.fill('[data-part="search"]', "dur:>850us kind:backward rank:5,77")
    found = opened.locator('[data-part="found"]')
    expect(found).to_have_text(f"{len(wanted):,}")
    opened.locator('[data-part="scroller"]').focus()
    opened.keyboard.press("Escape")
    head = StoreReader(run.store).manifest
    see(opened, head.start_ns, head.end_ns)
    picture(opened, "matches-of-the-whole")
    opened.keyboard.press("n")
    expect(found).to_have_text(f"1 of {len(wanted):,}")
    assert chosen(opened) == wanted[0]
    for _ in range(3):
        opened.keyboard.press("n")
    expect(found).to_have_text(f"4 of {len(wanted):,}")
    assert chosen(opened) == wanted[3]
    for _ in range(4):  # pressed faster than spans are read
        opened.keyboard.press("Shift+n")
    expect(found).to_have_text(f"{len(wanted):,} of {len(wanted):,}")
    assert chosen(opened) == wanted[-1]
    picture(opened, "last-match")
    assert held(opened)["spans"] < MOST_HELD


def test_a_search_that_finds_nothing_in_the_whole_run_says_so(opened: Page) -> None:
    opened.fill('[data-part="search"]', "name:nowhere")
    expect(opened.locator('[data-part="found"]')).to_have_text("none")
    expect(opened.locator('[data-part="match-next"]')).to_be_disabled()


def test_a_search_goes_on_when_the_server_answers_again(opened: Page, long_run: Any) -> None:
    opened.route("**/search/?*", lambda route: route.abort())
    opened.fill('[data-part="search"]', "step:40 kind:optimizer")
    found = opened.locator('[data-part="found"]')
    expect(found).to_have_text("The server does not answer; trying again")
    opened.unroute("**/search/?*")
    expect(found).to_have_text(f"{SHAPE.ranks}", timeout=20_000)


def test_a_window_that_cannot_be_read_is_said_while_coarser_cells_stay(opened: Page, long_run: Any, picture: Any) -> None:
    run, _ = long_run
    head = StoreReader(run.store).manifest
    middle_ns = (head.start_ns + head.end_ns) / 2
    opened.route("**/window/?*", lambda route: route.abort())
    opened.evaluate("(at) => window.lockstep.setView(at - 3e7, at + 3e7)", middle_ns)
    reading = opened.locator('[data-part="reading"]')
    expect(reading).to_contain_text("Detail could not be read: The server does not answer. Trying again in")
    assert opened.evaluate("() => window.lockstep.timeline.painter.rows.pixels.some(Boolean)")
    picture(opened, "failed")
    opened.unroute("**/window/?*")
    expect(reading).to_have_text("", timeout=20_000)
    until(opened, f"{IS_READ} && window.lockstep.timeline.trace.holds({middle_ns} - 3e7, {middle_ns} + 3e7)")


@pytest.mark.parametrize("width", [1440, 390])
def test_nothing_moves_while_detail_is_read(opened: Page, long_run: Any, picture: Any, width: int) -> None:
    opened.set_viewport_size({"width": width, "height": 900})
    until(opened, IS_READ)
    head = StoreReader(long_run[0].store).manifest
    opened.evaluate("() => window.shifts.splice(0)")
    for share in (0.2, 0.7):
        at = head.start_ns + share * (head.end_ns - head.start_ns)
        for half_ns in (1e9, 5e7, 4e6):
            see(opened, at - half_ns, at + half_ns)
    assert opened.evaluate("() => window.shifts.reduce((sum, shift) => sum + shift, 0)") < 0.001
    assert opened.evaluate("() => document.documentElement.scrollWidth") <= width
    picture(opened, f"{width}")
