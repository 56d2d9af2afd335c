"""A run under DualPipe: its page says which way each micro-batch goes, and that mirrored ranks have the same stages."""

import pytest
from playwright.sync_api import expect

from tests.browser.first_light import launch, log_in, wait_until_complete
from tests.browser.static_server import until

pytestmark = [pytest.mark.browser, pytest.mark.stack]

STEPS = 6


def test_both_ways_are_told_apart_before_and_during_the_run(stack, page, picture):
    log_in(page, stack)
    page.goto(f"{stack.url}/launch/?preset=pipeline-dualpipe")
    expect(page.get_by_text("4 stages both ways").first).to_be_visible()
    expect(page.get_by_text("stages 0, 3").first).to_be_visible()
    drawn = page.locator("svg.sketch text").all_text_contents()
    assert {"F0↓", "F4↑"} <= set(drawn)
    picture(page, "launch")

    launch(page, stack, "pipeline-dualpipe", steps=f"{STEPS}")
    wait_until_complete(page)
    page.locator(".run-panels").scroll_into_view_if_needed()  # a view works only while it is seen
    page.locator(".panel-sketch").last.wait_for()
    ideal, measured = page.locator(".panel-sketch").all()
    for drawing in (ideal, measured):
        texts = set(drawing.locator("text").all_text_contents())
        assert {f"F{m}{'↓' if m < 4 else '↑'}" for m in range(8)} <= texts
    picture(page, "run")

    told = page.evaluate("""() => {
      const { trace } = window.lockstep.timeline;
      const ranks = trace.ranks.map((_, rank) => rank);
      const groups = ranks.map((rank) => ranks.filter((other) => trace.areTogether(rank, other, "mirror")));
      return { groups, ways: ranks.map((rank) => [rank, 3 - rank].map((stage) => trace.wayOf(rank, stage)).join("")) };
    }""")
    assert told == {"groups": [[0, 3], [1, 2], [1, 2], [0, 3]], "ways": ["↓↑"] * 4}


def test_a_collective_of_mirrored_ranks_has_two_members(stack, page):
    log_in(page, stack)
    launch(page, stack, "pipeline-dualpipe", steps="3")
    wait_until_complete(page)
    page.get_by_role("tab", name="Collectives").click()
    until(page, "document.querySelector('#panel-collectives')?.innerText.includes('mirror')")
    members = page.evaluate("""async () => {
      const { trace } = window.lockstep.timeline;
      const step = trace.steps.sorted.at(-1);
      const found = [];
      for (const rank of [0, 1]) {
        const lane = trace.lane(rank, 1);
        for (let place = 0; place < lane.end; place = lane.next(place)) {
          const span = lane.spanAt(place);
          if (span.step === step.step && trace.strings[span.group] === "mirror") found.push([rank, span.bytes > 8]);
        }
      }
      return found;
    }""")
    assert sorted(members) == [[0, False], [0, True], [0, True], [1, True], [1, True]], "a stage each, and rank 0 the loss"
