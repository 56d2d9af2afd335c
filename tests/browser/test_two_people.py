"""Two people in two browsers: one launches, the other sees it, comments on a spot, is shown around; a link ends."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.first_light import launch, log_in_by_the_form, wait_until_complete, wait_until_drawn
from tests.stack.stack import at_once_seconds, running_stack

pytestmark = [pytest.mark.browser, pytest.mark.stack, pytest.mark.timed]

PASSWORD = "seven staggered bars"


@pytest.fixture(scope="module")
def stack():
    with running_stack() as running:
        running.create_user("ada", PASSWORD, is_superuser=False)
        yield running


@pytest.fixture
def ada(stack, browser) -> Page:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    log_in_by_the_form(page, stack, "ada", PASSWORD)
    yield page
    context.close()


@pytest.fixture
def stranger(browser) -> Page:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    yield context.new_page()
    context.close()


def choose_range(page: Page) -> None:
    """A drag on the ruler."""
    box = page.locator('[data-part="scroller"]').bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 30, steps=4)
    page.mouse.up()


def test_two_people_see_a_run_talk_about_it_and_show_each_other_around(stack, ada, stranger, picture):
    ben = stranger
    ada.goto(f"{stack.url}/account/")
    ada.get_by_label("New team").fill("compilers")
    ada.get_by_role("button", name="Make a team").click()
    ada.get_by_label("As", exact=True).select_option("editor")
    ada.get_by_role("button", name="Make a link").click()
    invitation = ada.locator("#new-url").input_value()
    picture(ada, "team")

    ben.goto(invitation)
    picture(ben, "invited")
    ben.get_by_label("Name").fill("ben")
    ben.get_by_label("Password", exact=True).fill(PASSWORD)
    ben.get_by_label("Password, once more").fill(PASSWORD)
    ben.get_by_role("button", name="Make the account and join").click()
    expect(ben.get_by_role("heading", name="compilers")).to_be_visible()
    ben.goto(stack.url)
    expect(ben.get_by_text("No run yet")).to_be_visible()

    ada.goto(f"{stack.url}/launch/?preset=pipeline-1f1b")
    ada.locator('[name="steps"]').fill("400")
    ada.locator("#team").select_option(label="compilers")
    ada.locator("#launch").click()
    ada.wait_for_url("**/runs/*/")
    run = ada.url.rstrip("/").rsplit("/", 1)[-1]
    entry = ben.locator(f'[data-key="{run}"] a')
    expect(entry).to_be_visible(timeout=8000)  # without a reload, and sooner than the list asks by itself
    entry.click()
    for page in (ada, ben):
        wait_until_drawn(page, spans=200)
        expect(page.locator(".face")).to_have_count(2)

    choose_range(ben)
    ben.keyboard.press("r")
    words = ben.get_by_label("Say something about the run or a spot in it")
    expect(words).to_be_focused()
    assert "the chosen range" in ben.get_by_label("What it is about").evaluate("box => box.selectedOptions[0].textContent")
    words.fill("Why is this **bubble** here, @ada?")
    ada.evaluate(NOTE_MARK)
    ben.evaluate("() => { window.sentAtMs = Date.now(); }")
    ben.get_by_role("button", name="Comment", exact=True).click()
    mark = ada.locator(".tl-note")
    expect(mark).to_have_count(1)
    took_ms = ada.evaluate("() => window.markedAtMs") - ben.evaluate("() => window.sentAtMs")
    assert took_ms < at_once_seconds() * 1000, f"the mark took {took_ms} ms"
    expect(ada.locator("#bell")).to_have_attribute("aria-label", "Notices, 1 unread")

    ada.locator('[data-part="follow"]').click()  # the mark stands still
    ada.evaluate("() => window.lockstep.setView(0, 1e10)")
    mark.press("Enter")
    thread = ada.locator(".thread")
    expect(thread).to_be_focused()
    expect(thread.locator("strong")).to_have_text("bubble")
    picture(ada, "mark")
    thread.get_by_role("button", name="Answer").click()
    ada.get_by_label("Answer in Markdown").fill("Warm-up: rank 3 has nothing yet.")
    ada.get_by_label("Answer in Markdown").press("Control+Enter")
    expect(ben.locator(".said")).to_have_count(2)
    picture(ben, "thread")

    ada.get_by_role("button", name="Show around").click()
    ada.evaluate("() => window.lockstep.setView(2e9, 3e9)")
    expect(ben.locator('[data-part="led-words"]')).to_contain_text("ada shows you around")
    ben.wait_for_function(
        "() => Math.abs(window.lockstep.view().fromNs - 2e9) < 1e6 && Math.abs(window.lockstep.view().toNs - 3e9) < 1e6"
    )
    ada.keyboard.press("g")
    ben.wait_for_function("() => window.lockstep.timeline.arrangement.by === 'pp'")
    expect(ben.locator('[data-part="group"]')).to_have_value("pp")
    picture(ben, "led")
    ben.get_by_role("button", name="Go my own way").click()
    ada.evaluate("() => window.lockstep.setView(4e9, 5e9)")
    expect(ben.locator('[data-part="led-words"]')).to_contain_text("shows others around")
    assert abs(ben.evaluate("() => window.lockstep.view().fromNs") - 2e9) < 1e6

    ben.locator(".said").first.get_by_role("button", name="Edit").click()
    ben.get_by_label("Change in Markdown").fill("Why this bubble?")
    ben.get_by_role("button", name="Change", exact=True).click()
    expect(ada.locator(".said-words").first).to_have_text("Why this bubble?")
    ada.goto(f"{stack.url}/notices/")
    expect(ada.get_by_role("link", name=re.compile("ben mentioned you"))).to_be_visible()
    picture(ada, "notices")
    stack.stop_run(run)


# Notes when the first mark of a comment was there, in window.markedAtMs.
NOTE_MARK = """() => {
  const notes = document.querySelector('[data-part="notes"]');
  new MutationObserver(() => {
    if (notes.querySelector(".tl-note")) window.markedAtMs ??= Date.now();
  }).observe(notes, { childList: true });
}"""


# Notes when the page was told that it is shared no longer, in window.endedAtMs.
NOTE_END = """() => {
  const connection = document.querySelector('[data-part="connection"]');
  new MutationObserver(() => {
    if (connection.textContent === "no longer shared") window.endedAtMs ??= Date.now();
  }).observe(connection, { childList: true, characterData: true, subtree: true });
}"""


def test_a_link_opens_at_its_view_and_its_page_is_shown_out_within_a_second_of_its_end(stack, ada, stranger, picture):
    run = launch(ada, stack, "ddp-digits", steps="6")
    wait_until_complete(ada)
    ada.evaluate(
        "() => { const end = window.lockstep.timeline.trace.lastEndNs; window.lockstep.setView(end * .5, end * .75); }"
    )
    shown = ada.evaluate("() => window.lockstep.view()")
    ada.keyboard.press("x")
    ada.get_by_label("Search spans").fill("kind:forward")
    ada.get_by_role("button", name="Share").click()
    ada.get_by_label("For whom or what").fill("the review")
    ada.get_by_text("Opens at what I see now").click()
    picture(ada, "share")
    ada.get_by_role("button", name="Make a link").click()
    link = ada.locator("#new-link").input_value()
    stranger.goto(link)
    wait_until_complete(stranger)
    stranger.wait_for_function(f"() => Math.abs(window.lockstep.view().fromNs - {shown['fromNs']}) < 1e5")
    assert stranger.evaluate("() => window.lockstep.timeline.arrangement.isBare")
    expect(stranger.get_by_label("Search spans")).to_have_value("kind:forward")
    assert stranger.locator("#tab-comments").count() == 0
    frame = stranger.context.new_page()
    assert frame.goto(link.replace("/s/", "/embed/")).status == 200
    expect(frame.locator('[data-part="connection"]')).to_have_text("complete")
    picture(frame, "embed")
    expect(ada.locator(".face-guest")).to_have_count(1)

    for page in (stranger, frame):
        page.evaluate(NOTE_END)
    began_ms = ada.evaluate("() => Date.now()")
    ada.get_by_role("button", name=re.compile("Take back the review")).click()
    for page in (stranger, frame):
        expect(page.locator('[data-part="connection"]')).to_have_text("no longer shared", timeout=9000)
        took_ms = page.evaluate("() => window.endedAtMs") - began_ms
        assert took_ms < at_once_seconds() * 1000, f"the page was shown out after {took_ms} ms"
    assert stranger.goto(link).status == 404
    assert stack.run(run)["state"] == "finished"
