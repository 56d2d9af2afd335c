"""What a person does with the run page: arranges lanes, searches, compares a step with its ideal, reads it without seeing it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chromium import ARTIFACTS
from tests.browser.run_page import rest, show_step, view
from tests.browser.timeline_server import RANKS, Server, state

pytestmark = [pytest.mark.browser, pytest.mark.timed]

AXE = ARTIFACTS / "axe.min.js"
# Of what was found, which one is shown, from 1 on; null while the search goes on.
PLACE_FOUND = r"""() => Number(/^(\d+) of /.exec(document.querySelector('[data-part="found"]').textContent)?.[1]) || null"""


def part(page: Page, name: str) -> Any:
    return page.locator(f'[data-part="{name}"]')


def test_the_address_keeps_grouping_folds_order_and_search(finished: Page, made: Any) -> None:
    show_step(finished, made, 5)
    part(finished, "group").select_option("pp")
    finished.keyboard.press("Escape")
    part(finished, "scroller").focus()
    finished.keyboard.press("z")
    finished.keyboard.press("o")
    finished.keyboard.press("/")
    finished.keyboard.type("kind:backward mb:3")
    expect(part(finished, "found")).to_have_text(str(RANKS * 10))
    finished.wait_for_function("location.hash.includes('mb%3A3') && location.hash.includes('fold=')")
    asked = "() => ({ ...window.lockstep.timeline.arrangement, folded: [...window.lockstep.timeline.arrangement.folded] })"
    kept = finished.evaluate(asked)
    assert (kept["by"], len(kept["folded"]), kept["isSorted"]) == ("pp", RANKS, True)
    finished.reload()
    finished.wait_for_function("window.lockstep?.timeline.arrangement.by === 'pp'")
    again = finished.evaluate(asked)
    assert [again[name] for name in ("by", "folded", "isSorted")] == [kept[name] for name in ("by", "folded", "isSorted")]
    expect(part(finished, "search")).to_have_value("kind:backward mb:3")


def test_a_search_is_walked_by_keys_and_says_where_one_is(finished: Page, made: Any) -> None:
    show_step(finished, made, 5)
    part(finished, "scroller").focus()
    finished.keyboard.press("/")
    finished.keyboard.type("kind:optimizer")
    expect(part(finished, "found")).to_have_text(str(RANKS * 10))
    finished.keyboard.press("Enter")
    expect(part(finished, "found")).to_contain_text(f"of {RANKS * 10}")
    expect(part(finished, "details")).to_contain_text("optimizer")
    part(finished, "scroller").focus()
    before = finished.wait_for_function(PLACE_FOUND).json_value()
    finished.keyboard.press("n")
    expect(part(finished, "found")).to_have_text(f"{before + 1} of {RANKS * 10}")
    finished.keyboard.press("Shift+N")
    expect(part(finished, "found")).to_have_text(f"{before} of {RANKS * 10}")


def test_a_search_that_cannot_be_read_is_answered_in_words(finished: Page) -> None:
    part(finished, "search").fill("dur:long")
    expect(part(finished, "found")).to_contain_text('dur: takes a length such as >5ms or 2ms-4ms; "long" is none')
    assert part(finished, "search").get_attribute("aria-invalid") == "true"
    part(finished, "search").press("Escape")
    expect(part(finished, "found")).to_be_empty()


def test_a_click_on_a_groups_heading_folds_it(finished: Page) -> None:
    part(finished, "group").select_option("pp")
    box = part(finished, "scroller").bounding_box()
    finished.mouse.click(box["x"] + 40, box["y"] + 46 + 12)
    finished.wait_for_function("window.lockstep.timeline.arrangement.folded.has('pp0')")


def test_the_longest_chain_adds_up_to_the_step(finished: Page, made: Any) -> None:
    show_step(finished, made, 5)
    part(finished, "scroller").focus()
    finished.keyboard.press("c")
    expect(part(finished, "why-title")).to_have_text("Longest chain of step 5")
    expect(part(finished, "why")).to_contain_text("backward")
    lengths = finished.evaluate("""() => {
      const { path } = window.lockstep.timeline;
      return [path.links.reduce((sum, { ownNs, gapNs }) => sum + ownNs + gapNs, 0), path.endNs - path.startNs];
    }""")
    assert lengths[0] == pytest.approx(lengths[1])
    assert lengths[1] >= 0.97 * (made[1][5]["end_ns"] - made[1][5]["start_ns"])
    finished.keyboard.press("c")
    expect(part(finished, "why-title")).to_have_text("Why did it wait")


def test_the_ideal_is_the_schedules_own_step_and_its_difference_is_told(finished: Page, made: Any) -> None:
    show_step(finished, made, 5)
    part(finished, "ideal").click()
    finished.wait_for_function("window.lockstep.timeline.ideal")
    length, difference = finished.evaluate("""() => {
      const { ideal } = window.lockstep.timeline;
      return [ideal.endNs - ideal.startNs, ideal.measuredNs - (ideal.endNs - ideal.startNs)];
    }""")
    assert length == pytest.approx((8 + RANKS - 1) * 60e6)  # (m + p − 1)(F + B)
    assert difference == pytest.approx(made[1][5]["work_end_ns"] - made[1][5]["work_start_ns"] - length)
    expect(part(finished, "announcer")).to_contain_text("Ideal of step 5")
    assert part(finished, "ideal").get_attribute("aria-pressed") == "true"


def test_a_collective_is_shown_on_all_its_ranks_in_the_order_of_arrival(finished: Page, made: Any) -> None:
    show_step(finished, made, 5)
    finished.evaluate("""() => {
      const { timeline } = window.lockstep, lane = timeline.trace.lane(2, 1);
      timeline.select(lane.spanAt(lane.firstEndingAfter(timeline.trace.steps.sorted[5].startNs)));
    }""")
    rows = [row for rank in range(RANKS) for row in made[0][rank] if row["kind"] == 9 and row["step"] == 5]
    order = sorted(range(RANKS), key=lambda rank: rows[rank]["start"])
    expect(finished.locator(".tl-arrivals button")).to_have_text([f"rank {rank}" for rank in order])


def test_a_chosen_range_adds_up_exactly_by_rank(finished: Page, made: Any) -> None:
    begin, end = made[1][3]["start_ns"] + 11e6, made[1][4]["start_ns"] + 7e6
    finished.evaluate("([fromNs, toNs]) => window.lockstep.timeline.setChosenRange({ fromNs, toNs })", [begin, end])
    expect(part(finished, "totals-title")).to_contain_text("Chosen range")
    for rank in range(RANKS):
        busy = sum(max(0.0, min(end, row["end"]) - max(begin, row["start"])) for row in made[0][rank] if row["kind"] < 6)
        shown = finished.locator(f".tl-ranks tbody tr:nth-child({rank + 1}) td").first
        expect(shown).to_have_text(f"{busy / 1e6:.0f} ms" if busy >= 99.95e6 else f"{busy / 1e6:.1f} ms")


def test_the_spans_in_sight_are_a_table_too(finished: Page, made: Any) -> None:
    show_step(finished, made, 5)
    part(finished, "scroller").focus()
    finished.keyboard.press("t")
    table = part(finished, "table")
    expect(table).to_contain_text("Spans 1 to 100 of")
    expect(table.locator("tbody tr")).to_have_count(100)
    table.get_by_role("button", name="Later").click()
    expect(table).to_contain_text("Spans 101 to")
    table.locator("tbody button").first.click()
    expect(part(finished, "announcer")).to_contain_text("rank")


def test_keys_alone_reach_every_tool(finished: Page) -> None:
    part(finished, "search").focus()
    reached = []
    for _ in range(12):
        finished.keyboard.press("Tab")
        reached.append(finished.evaluate("document.activeElement.dataset.part"))
    assert [name for name in reached if name in ("group", "sorted", "bare", "path", "ideal", "table-toggle", "scroller")] == [
        "group", "sorted", "bare", "path", "ideal", "table-toggle", "scroller"]


def test_a_live_page_does_not_shift(page: Page, opened: Callable[..., Server], made: Any) -> None:
    spans, figures = made
    page.add_init_script("""window.shifts = [];
      new PerformanceObserver((list) => window.shifts.push(...list.getEntries().map((entry) => entry.value)))
        .observe({ type: "layout-shift", buffered: true });""")
    server = opened(state("running"))
    zero = time.time_ns() - int(figures[4]["end_ns"])
    for step in range(6):
        low, high = (figures[step - 1]["end_ns"] if step else -1), figures[step]["end_ns"]
        server.give([[row for row in rows if low < row["end"] <= high] for rows in spans], [figures[step]], zero_unix_ns=zero)
        page.wait_for_function("(spans) => window.lockstep.spans >= spans", arg=sum(server.before))
        rest(page)
    assert sum(page.evaluate("window.shifts")) < 0.01


def test_less_motion_is_respected(finished: Page, made: Any) -> None:
    finished.emulate_media(reduced_motion="reduce")
    show_step(finished, made, 2)
    finished.evaluate("window.lockstep.timeline.fit()")
    assert finished.evaluate("window.lockstep.timeline.camera.glide") is None
    assert view(finished)["fromNs"] <= 0


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_axe_finds_nothing_serious(finished: Page, made: Any, theme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not there: `make axe` fetches it from npm")
    if finished.evaluate("document.documentElement.dataset.theme") != theme:
        finished.locator("[data-theme-toggle]").click()
    show_step(finished, made, 5)
    part(finished, "scroller").focus()
    for key in ("c", "t", "ArrowRight"):
        finished.keyboard.press(key)
    part(finished, "search").fill("kind:backward")
    finished.add_script_tag(path=AXE)
    found = finished.evaluate("""async () => (await axe.run()).violations.map(
      ({ id, impact, nodes }) => ({ id, impact, on: nodes.map((node) => node.html.slice(0, 200)) }))""")
    assert [each for each in found if each["impact"] in ("serious", "critical")] == []
