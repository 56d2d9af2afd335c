"""The run page over a made-up pipeline: what it draws, how it is moved by mouse and keys, and what it says."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.run_page import find, middle_of, rest, show_step, view
from tests.browser.span_digest import span_digest
from tests.browser.timeline_server import RANKS, Server, state
from tests.browser.timeline_site import encoded
from trainer.trace import frame as frames

pytestmark = pytest.mark.browser


def test_the_page_holds_every_span_that_was_sent(finished: Page, made: Any) -> None:
    wanted = []
    for rank, rows in enumerate(made[0]):
        wanted.append(span_digest(frames.decode(encoded(rank, 1, rows, 0)).spans))
    assert finished.evaluate("window.lockstep.spanDigest()") == wanted
    assert finished.evaluate("window.lockstep.perRank") == [len(rows) for rows in made[0]]
    assert finished.evaluate("window.lockstep.spans") == sum(map(len, made[0]))


def test_the_digest_sees_one_changed_bit(made: Any) -> None:
    columns = frames.decode(encoded(0, 1, made[0][0], 0)).spans
    changed = {name: np.array(column) for name, column in columns.items()}
    changed["duration_ns"][7] += 1
    assert span_digest(columns) != span_digest(changed)


def test_wide_spans_carry_their_labels(finished: Page, made: Any) -> None:
    show_step(finished, made, 5)
    assert finished.evaluate("window.lockstep.timeline.painter.labels") > RANKS * 8
    finished.evaluate("window.lockstep.timeline.fit()")
    rest(finished)
    assert finished.evaluate("window.lockstep.timeline.painter.labels") < RANKS * 8


def test_of_the_whole_run_no_more_is_in_sight_than_there_is(finished: Page) -> None:
    finished.evaluate("window.lockstep.timeline.fit()")
    rest(finished)
    expect(finished.locator('[data-part="range-time"]')).to_have_text(re.compile(r"^(.+) of \1$"))


def test_a_link_to_another_moment_is_followed_in_an_open_page(finished: Page, made: Any) -> None:
    row, (other_row, span) = made[1][3], (made[1][6], find(made, 1, 1, 6, 0))
    finished.evaluate("(hash) => { location.hash = hash }", f"t={row['start_ns']:.0f},{row['end_ns']:.0f}")
    until_seen(finished, row)
    finished.evaluate("(hash) => { location.hash = hash }",
                      f"t={other_row['start_ns']:.0f},{other_row['end_ns']:.0f}&span=1,0,{span['start']}")
    until_seen(finished, other_row)
    expect(finished.locator('[data-part="details"]')).to_contain_text("rank 1 · stage 1 · micro-batch 0 · step 6")
    finished.evaluate("location.hash = 'content'")  # the way past the heading is no view
    rest(finished)
    until_seen(finished, other_row)


def test_a_link_is_followed_though_the_page_writes_what_it_shows_meanwhile(finished: Page, made: Any) -> None:
    row = made[1][3]
    finished.evaluate("""(hash) => {
        const before = location.href;
        location.hash = hash;
        history.replaceState(history.state, "", before); // as the page does, before it is told of the link
    }""", f"t={row['start_ns']:.0f},{row['end_ns']:.0f}")
    until_seen(finished, row)


def until_seen(page: Page, row: dict[str, Any]) -> None:
    page.wait_for_function("([from, to]) => { const { fromNs, toNs } = window.lockstep.view();"
                           " return Math.abs(fromNs - from) < 2 && Math.abs(toNs - to) < 2; }",
                           arg=[row["start_ns"], row["end_ns"]])


def test_a_click_shows_a_spans_details_and_what_it_waited_for(finished: Page, made: Any) -> None:
    show_step(finished, made, 5)
    span = find(made, 1, 2, 5, 0)  # backward of micro-batch 0 on rank 1
    finished.mouse.click(*middle_of(finished, span))
    details, why = finished.locator('[data-part="details"]'), finished.locator('[data-part="why"]')
    expect(details).to_contain_text("backward B0")
    expect(details).to_contain_text("rank 1 · stage 1 · micro-batch 0 · step 5")
    expect(why).to_contain_text("B0 of rank 2")
    expect(finished.locator('[data-part="announcer"]')).to_contain_text("backward B0")


def test_a_wait_says_what_it_waits_for(finished: Page, made: Any) -> None:
    show_step(finished, made, 5)
    wait = find(made, 0, 6, 5, 0)
    finished.mouse.move(*middle_of(finished, wait))
    expect(finished.locator(".tl-tip")).to_contain_text("waits for B0 of rank 1")
    finished.mouse.click(*middle_of(finished, wait))
    expect(finished.locator('[data-part="details"]')).to_contain_text("Duration")
    expect(finished.locator('[data-part="details"]')).not_to_contain_text("Median of its kind")


def test_the_card_beside_the_pointer_stays_true_when_the_view_moves_under_it(finished: Page, made: Any) -> None:
    show_step(finished, made, 5)
    finished.mouse.move(*middle_of(finished, find(made, 0, 1, 5, 0)))
    card = finished.locator(".tl-tip")
    expect(card).to_contain_text("micro-batch 0 · step 5")
    show_step(finished, made, 7)
    expect(card).to_contain_text("step 7")
    finished.evaluate("window.lockstep.setView(-9e9, -8e9)")
    expect(card).to_be_hidden()


def test_dependencies_are_followed_through_the_pipeline_and_back(finished: Page, made: Any) -> None:
    show_step(finished, made, 5)
    finished.mouse.click(*middle_of(finished, find(made, 0, 1, 5, 0)))
    details = finished.locator('[data-part="details"]')
    for rank in (1, 2, 3):
        finished.keyboard.press("]")
        rest(finished)
        expect(details).to_contain_text(f"forward F0Whererank {rank}")
    for rank in (2, 1, 0):
        finished.keyboard.press("[")
        rest(finished)
        expect(details).to_contain_text(f"rank {rank}")


def test_drag_pans_wheel_zooms_and_keys_do_both(finished: Page, made: Any) -> None:
    show_step(finished, made, 5)
    start = view(finished)
    width = start["toNs"] - start["fromNs"]
    box = finished.locator('[data-part="scroller"]').bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    finished.mouse.move(x, y)
    finished.mouse.down()
    finished.mouse.move(x - 100, y, steps=5)
    finished.mouse.up()
    panned = view(finished)
    assert panned["fromNs"] > start["fromNs"] + width * 0.05
    assert panned["toNs"] - panned["fromNs"] == pytest.approx(width)
    finished.keyboard.down("Control")
    finished.mouse.wheel(0, -300)
    finished.keyboard.up("Control")
    finished.wait_for_function("(w) => window.lockstep.view().toNs - window.lockstep.view().fromNs < w", arg=width * 0.7)
    zoomed = view(finished)
    finished.keyboard.press("s", delay=200)
    assert view(finished)["toNs"] - view(finished)["fromNs"] > zoomed["toNs"] - zoomed["fromNs"]
    before = view(finished)["fromNs"]
    finished.keyboard.press("a", delay=200)
    assert view(finished)["fromNs"] < before
    finished.keyboard.press("0")
    rest(finished)
    assert view(finished)["fromNs"] <= 0


def test_a_drag_on_the_ruler_chooses_a_range_and_f_goes_there(finished: Page, made: Any) -> None:
    show_step(finished, made, 5)
    box = finished.locator('[data-part="scroller"]').bounding_box()
    finished.mouse.move(box["x"] + 300, box["y"] + 34)
    finished.mouse.down()
    finished.mouse.move(box["x"] + 400, box["y"] + 34, steps=4)
    finished.mouse.up()
    expect(finished.locator('[data-part="totals-title"]')).to_contain_text("Chosen range")
    before = view(finished)
    finished.keyboard.press("f")
    rest(finished)
    assert view(finished)["toNs"] - view(finished)["fromNs"] < (before["toNs"] - before["fromNs"]) / 4


def test_arrow_keys_go_from_span_to_span_and_say_which(finished: Page, made: Any) -> None:
    show_step(finished, made, 5)
    finished.locator('[data-part="scroller"]').focus()
    finished.keyboard.press("ArrowRight")
    said = finished.locator('[data-part="announcer"]')
    expect(said).to_contain_text("rank 0")
    first = said.text_content()
    finished.keyboard.press("ArrowRight")
    assert said.text_content() != first
    for _ in range(3):
        finished.keyboard.press("ArrowDown")
    expect(said).to_contain_text("rank 1")


def test_the_address_keeps_the_range_and_the_span(page: Page, opened: Callable[..., Server], made: Any) -> None:
    server = opened(state())
    server.give(*made, complete=True)
    page.wait_for_function("window.lockstep.complete")
    show_step(page, made, 6)
    page.mouse.click(*middle_of(page, find(made, 2, 1, 6, 3)))
    page.wait_for_function("location.hash.includes('span=') && location.hash.includes('t=')")
    kept, address = view(page), page.evaluate("location.hash")
    server.forget()
    server.give(*made, complete=True)
    page.reload()
    page.wait_for_function("window.lockstep?.complete && window.lockstep.timeline.selected")
    assert page.evaluate("location.hash") == address
    assert view(page)["fromNs"] == pytest.approx(kept["fromNs"], abs=1e6)
    expect(page.locator('[data-part="details"]')).to_contain_text("forward F3")


def test_a_live_page_follows_the_head_until_the_visitor_moves(page: Page, opened: Callable[..., Server], made: Any) -> None:
    spans, figures = made
    server = opened(state("running"))
    zero = time.time_ns() - int(figures[4]["end_ns"])

    def until(step: int) -> None:
        low, high = (figures[step - 1]["end_ns"] if step else -1), figures[step]["end_ns"]
        server.give([[row for row in rows if low < row["end"] <= high] for rows in spans], [figures[step]], zero_unix_ns=zero)
        page.wait_for_function("(spans) => window.lockstep.spans >= spans", arg=sum(server.before))

    for step in range(5):
        until(step)
    page.wait_for_function("(end) => window.lockstep.view().toNs > end", arg=figures[4]["end_ns"])
    assert view(page)["following"]
    page.mouse.move(700, 500)
    page.mouse.down()
    page.mouse.move(900, 500, steps=4)
    page.mouse.up()
    held = view(page)
    assert not held["following"]
    until(5)
    assert view(page)["fromNs"] == held["fromNs"]
    page.keyboard.press("l")
    page.wait_for_function("(end) => window.lockstep.view().toNs > end", arg=figures[5]["end_ns"])
    assert len(page.evaluate("window.lockstep.latencySamples")) > 0


def test_figures_stand_beside_their_theory_and_say_what_is_emulated(page: Page, opened: Callable[..., Server], made: Any) -> None:
    server = opened(state("running", realtime=False))
    server.give(*made)
    bubble = page.locator('[data-figure="bubble"]')
    expect(bubble).to_contain_text(f"{made[1][-1]['bubble_share'] * 100:.1f}")
    expect(bubble).to_contain_text("theory 27.3 %: (p−1)/(m+p−1)")
    expect(page.locator(".run-emulated")).to_contain_text("Paced.")
    expect(page.locator('[data-part="realtime"]')).to_contain_text("not granted")


def test_states_are_told_from_queue_to_failure(page: Page, opened: Callable[..., Server]) -> None:
    server = opened(state("queued", place_in_queue=3, steps_done=0, worker=""))
    expect(page.locator('[data-part="progress"]')).to_have_text("number 3 in the queue")
    expect(page.locator('[data-part="empty"]')).to_contain_text("2 runs will start first")
    server.say(state="starting", place_in_queue=0)
    expect(page.locator('[data-part="state"]')).to_contain_text("Starting")
    server.say(state="running", steps_done=2)
    expect(page.locator('[data-part="progress"]')).to_contain_text("2 of 10 steps")
    server.say(state="failed", has_ended=True, reason="It ran out of memory.",
               failure={"rank": 2, "exit_code": None, "signal": "SIGKILL", "log_tail": "step 2\nKilled"})
    failure = page.locator('[data-part="failure"]')
    expect(failure).to_contain_text("Rank 2 ended by signal SIGKILL.")
    expect(failure).to_contain_text("Killed")
    expect(page.locator('[data-part="stop"]')).to_be_hidden()
    expect(page.locator('[data-part="log"]')).to_contain_text("rank 2 says hello")


def test_a_failure_is_told_once_and_its_log_does_not_widen_a_phones_page(page: Page, opened: Callable[..., Server]) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    opened(state("failed", reason="Rank 2 was killed by SIGKILL in step 3.",
                 failure={"rank": 2, "exit_code": None, "signal": "SIGKILL", "log_tail": "a line of a log " * 30}))
    expect(page.locator('[data-part="failure"] p')).to_have_text("The run failed. Rank 2 was killed by SIGKILL in step 3.")
    expect(page.locator('[data-part="failure-log"]')).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_link_holder_can_look_but_not_change(page: Page, opened: Callable[..., Server], made: Any) -> None:
    server = opened(state("running"), can_change=False)
    server.give(*made)
    page.wait_for_function("window.lockstep.spans > 0")
    assert page.locator("form[action*=stop], [data-open=share-dialog], a[href*=launch]").count() == 0
    expect(page.locator(".run-actions")).to_contain_text("read-only")


def test_a_question_mark_lists_the_keys(finished: Page) -> None:
    finished.keyboard.press("?")
    expect(finished.locator("#keys-dialog")).to_be_visible()
    expect(finished.locator("#keys-dialog")).to_contain_text("follow the head of the run")
    finished.keyboard.press("Escape")
    expect(finished.locator("#keys-dialog")).to_be_hidden()


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("width", [1440, 390])
def test_the_page_fits_its_width(finished: Page, made: Any, picture: Any, width: int, theme: str) -> None:
    if finished.evaluate("document.documentElement.dataset.theme") != theme:
        finished.locator("[data-theme-toggle]").click()
    finished.set_viewport_size({"width": width, "height": 900})
    show_step(finished, made, 5)
    assert finished.evaluate("document.documentElement.scrollWidth") <= width
    picture(finished, f"{theme}-{width}")
