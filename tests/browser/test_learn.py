"""The whole way of learning: from the list to an idea's page, its job launched there, and on the live page the guide's mark."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from dashboard.learn.ideas import IDEAS
from tests.browser.first_light import log_in, wait_until_drawn
from tests.stack.stack import Stack

pytestmark = [pytest.mark.browser, pytest.mark.stack]

# A view beside the timeline, the timeline, and a chart: whatever a guide may point at.
MARKED = {"bubble": '[data-part="panels"]', "tensor": '[data-part="frame"]', "routing": '[data-chart*="charts/loss"]'}
IN_SIGHT = """(part) => {
  const { top, bottom, width, height } = part.getBoundingClientRect();
  const header = document.querySelector(".top").getBoundingClientRect().bottom;
  return width > 200 && height > 100 && top >= header - 1 && top < innerHeight - 100 && bottom > header;
}"""


@pytest.mark.parametrize("key", MARKED)
def test_an_idea_is_launched_and_its_guide_marks_the_right_thing(stack: Stack, page: Page, picture, key: str) -> None:
    idea = IDEAS[key]
    log_in(page, stack)
    page.goto(stack.url)
    page.get_by_role("link", name="Learn").click()
    page.locator(f'a[href="/learn/{key}/"]').click()
    expect(page.get_by_role("heading", level=1)).to_have_text(idea.title)
    page.get_by_role("button", name="Run it now").click()
    page.wait_for_url(re.compile(rf"/runs/\w+/\?learn={key}"))
    run = re.search(r"/runs/(\w+)/", page.url)[1]
    guide = page.locator('[data-part="guide"]')
    expect(guide).to_contain_text(idea.look)
    wait_until_drawn(page)

    marked = page.locator(".guided")
    expect(marked).to_have_count(1)
    assert marked.evaluate("(part, selector) => part.matches(selector)", MARKED[key])
    guide.get_by_role("button", name="Show me").click()
    page.wait_for_function(IN_SIGHT, arg=marked.element_handle())
    if key == "bubble":
        expect(page.get_by_role("tab", name="Pipeline")).to_be_focused()
        expect(page.locator("#panel-pipeline svg, #panel-pipeline canvas").first).to_be_visible()
    elif key == "tensor":
        expect(page.locator('[data-part="scroller"]')).to_be_focused()
    else:
        expect(marked).to_have_attribute("data-drawn", re.compile(r"\d"), timeout=20_000)
    picture(page, "marked")

    guide.get_by_role("button", name="Close this guide").click()
    expect(guide).to_have_count(0)
    expect(marked).to_have_count(0)
    assert "learn=" not in page.url
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text(idea.title)
    stack.python(f"services.stop({run!r})")  # the next one's is not to wait for it
