"""In short, beside the timeline: a young run's first words come within seconds of its first steps, and room is kept for them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.timeline_server import Server, state

pytestmark = [pytest.mark.browser, pytest.mark.timed]

NOTHING = {"words": "No whole step yet.", "step_ms": None, "steps": 0, "pieces": [], "causes": []}
FOUND = {
    "words": "A step takes 700 ms, of which 480 ms are work.", "step_ms": 700, "steps": 3,
    "pieces": [{"key": "work", "title": "Work", "ms": 480, "share": 0.69, "says": ""},
               {"key": "bubble", "title": "Bubble of the schedule", "ms": 220, "share": 0.31, "says": ""}],
    "causes": [{"title": "Bubble", "remedies": [
        {"title": "The schedule DualPipe", "gain_ms": 160, "share": 0.23, "sets": {"schedule.name": "dualpipe"}}]}],
}
EMPTY_ANSWERS = 3


def test_a_young_runs_first_words_are_asked_for_every_two_seconds_and_then_seldom(
        page: Page, opened: Callable[..., Server], made: Any, picture: Any) -> None:
    asked: list[float] = []

    def answer(route: Route) -> None:
        asked.append(time.monotonic())
        route.fulfill(body=json.dumps(NOTHING if len(asked) <= EMPTY_ANSWERS else FOUND), content_type="application/json")

    page.route("**/panels/explain.json*", answer)
    server = opened(state("running"))
    words = page.locator('[data-part="short-words"]')
    expect(words).to_contain_text("From the first whole steps on")
    height = page.locator(".short").bounding_box()["height"]
    server.give(*made)  # all of its steps at once, and none after them
    expect(words).to_have_text(FOUND["words"], timeout=(EMPTY_ANSWERS + 2) * 2000)
    gaps = [later - earlier for earlier, later in pairwise(asked)]
    assert len(asked) == EMPTY_ANSWERS + 1 and all(1.9 < gap < 4 for gap in gaps[1:]), gaps
    form = page.get_by_role("link", name="Open in the form")
    expect(form).to_have_attribute("href", "/launch/?from=abcdefghjk&schedule.name=dualpipe")
    assert page.locator(".short").bounding_box()["height"] == height
    picture(page, "shown")
    server.say(steps_done=4)
    page.wait_for_timeout(2500)  # nothing tells that no question comes; before, one came in this time
    assert len(asked) == EMPTY_ANSWERS + 1


def test_a_run_without_steps_is_asked_once(page: Page, opened: Callable[..., Server]) -> None:
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        route.fulfill(body=json.dumps(NOTHING), content_type="application/json")

    page.route("**/panels/explain.json*", answer)
    with page.expect_response("**/panels/explain.json*"):
        opened(state("queued"))
    page.wait_for_timeout(2500)  # nothing tells that no question comes
    assert len(asked) == 1
