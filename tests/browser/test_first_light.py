"""The whole way, as a person goes it: account, launch, watch, stop, lose the connection, share, command line."""

from __future__ import annotations

import json
import os
import re
import signal
import time

import pytest
from playwright.sync_api import expect

from dashboard.bench.machine import machine_time, stolen_share
from tests.browser.first_light import (
    NAME,
    PASSWORD,
    digest_in_page,
    digest_in_store,
    launch,
    log_in,
    log_in_by_the_form,
    wait_until_complete,
    wait_until_drawn,
)
from tests.ranks.launch import MOST_STOLEN
from tests.stack.stack import running_stack, wait_for
from trainer.trace.kinds import Kind

pytestmark = [pytest.mark.browser, pytest.mark.stack, pytest.mark.timed]

# Whatever the connection's pill has said, however briefly, in window.connectionWords.
NOTE_CONNECTION = """() => {
  const pill = document.querySelector('[data-part="connection"]');
  window.connectionWords = [];
  const note = () => window.connectionWords.push(pill.textContent);
  new MutationObserver(note).observe(pill, { childList: true, subtree: true, characterData: true });
}"""


@pytest.fixture(scope="module")
def stack():
    with running_stack() as running:
        yield running


@pytest.fixture(scope="module")
def owned(stack):
    """The stack after its first visit."""
    if not stack.python("User.count()"):
        stack.create_user(NAME, PASSWORD)
    return stack


def test_the_one_time_link_makes_the_owner_and_works_once(stack, page, picture):
    [link] = re.findall(r"http://\S+/welcome/\S+/", stack.output.read_text())
    page.goto(link)
    picture(page, "welcome")
    page.get_by_label("Name").fill(NAME)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_label("Password, once more").fill(PASSWORD)
    page.get_by_role("button", name="Make the account").click()
    expect(page).to_have_url(f"{stack.url}/")
    picture(page, "no-runs-yet")
    assert page.goto(link).status == 404
    page.context.clear_cookies()
    page.goto(f"{stack.url}/")
    expect(page).to_have_url(re.compile("/login/"))
    log_in_by_the_form(page, stack)


def test_the_form_says_beside_the_field_what_would_do_and_keeps_what_was_typed(owned, page, picture):
    log_in(page, owned)
    page.goto(f"{owned.url}/launch/?preset=pipeline-1f1b")
    page.locator('[name="grid.pp"]').fill("3")
    page.locator('[name="name"]').fill("Three stages")
    message = page.locator('[data-field="grid.pp"] [data-error]')
    expect(message).to_contain_text("1, 2 or 4 would do")
    page.locator("#launch").click()
    expect(page).to_have_url(f"{owned.url}/launch/")
    expect(message).to_contain_text("1, 2 or 4 would do")
    expect(page.locator('[name="name"]')).to_have_value("Three stages")
    picture(page, "refused")


def test_a_launched_run_is_live_at_once_and_the_page_holds_what_the_store_holds(owned, page, picture):
    log_in(page, owned)
    run = launch(page, owned, "pipeline-1f1b", steps="8")
    wait_until_drawn(page, spans=100)
    state = page.locator('[data-part="state"]')
    expect(state).to_contain_text("Running")
    expect(page.locator('[data-part="progress"]')).to_contain_text(re.compile(r"[1-8] of 8 steps, .*left"))
    picture(page, "running")
    wait_until_complete(page)
    expect(state).to_contain_text("Finished")
    held = digest_in_page(page)
    assert held == digest_in_store(owned.home, run, ranks=4)
    assert all(rank["spans"] > 100 for rank in held)
    stats = page.evaluate("() => window.lockstep.stats")
    assert (stats["missing_frames"], stats["missing_spans"], stats["dropped_spans"]) == (0, 0, 0)
    figures = owned.run(run)["figures"]
    assert figures["spans"] == sum(rank["spans"] for rank in held)
    assert figures["bubble_share_theory"] == pytest.approx(3 / 11)
    expect(page.locator(".run")).to_contain_text("3/11")
    check_in_short(page)
    picture(page, "finished")


def check_in_short(page):
    """Above the timeline stands what Explain says, with its first remedy, and the way to the whole."""
    short = page.locator('[data-part="short"]')
    expect(short).to_contain_text("What costs most besides: bubble of the schedule")
    expect(short.get_by_role("img")).to_have_attribute("aria-label", re.compile("Work .*%, Bubble of the schedule .*%"))
    expect(short.get_by_role("link")).to_have_attribute("href", re.compile("from=.*&schedule\\."))
    words = short.locator('[data-part="short-words"]').text_content()
    short.get_by_role("button", name="Explain").click()
    expect(page.get_by_role("tab", name="Explain")).to_be_focused()
    expect(page.locator('[data-part="explain-words"]')).to_have_text(words)


def test_a_reload_in_the_middle_and_after_the_end_shows_every_span_once(owned, page):
    log_in(page, owned)
    run = launch(page, owned, "pipeline-gpipe", steps="12")
    wait_until_drawn(page, spans=300)
    page.reload()
    wait_until_drawn(page, spans=300)
    wait_until_complete(page)
    assert digest_in_page(page) == digest_in_store(owned.home, run, ranks=4)
    page.reload()
    wait_until_complete(page)
    assert digest_in_page(page) == digest_in_store(owned.home, run, ranks=4)


def test_a_lost_connection_comes_back_and_lacks_nothing(owned, page):
    log_in(page, owned)
    run = launch(page, owned, "pipeline-1f1b", steps="14")
    wait_until_drawn(page, spans=200)
    page.context.set_offline(True)
    os.kill(owned.pid_of("web"), signal.SIGKILL)  # Chromium's offline mode leaves open sockets alone
    expect(page.locator('[data-part="connection"]')).not_to_have_text("live")
    before = page.evaluate("() => window.lockstep.spans")
    wait_for(lambda: owned.run(run)["steps_done"] >= 6, 20, "the run to go on unwatched")
    assert page.evaluate("() => window.lockstep.spans") == before
    page.context.set_offline(False)
    wait_until_complete(page)
    assert digest_in_page(page) == digest_in_store(owned.home, run, ranks=4)


def test_a_stopped_run_keeps_what_it_showed(owned, page, picture):
    log_in(page, owned)
    run = launch(page, owned, "pipeline-1f1b", steps="500")
    wait_until_drawn(page, spans=200)
    page.locator('[data-part="stop"] button').click()
    row = owned.wait_for_state(run, "stopped")
    wait_until_complete(page)
    expect(page.locator('[data-part="state"]')).to_contain_text("Stopped")
    held = digest_in_page(page)
    assert held == digest_in_store(owned.home, run, ranks=4)
    assert 0 < row["steps_done"] < 500
    picture(page, "stopped")


def test_a_second_run_waits_in_the_queue_and_says_its_place(owned, page, picture):
    log_in(page, owned)
    first = launch(page, owned, "pipeline-1f1b", steps="500")
    owned.wait_for_state(first, "running")
    second = launch(page, owned, "ddp-digits", steps="3")
    expect(page.locator('[data-part="state"]')).to_contain_text("Queued")
    expect(page.locator(".run")).to_contain_text(re.compile("next in the queue|place 1|first in the queue", re.I))
    picture(page, "queued")
    owned.stop_run(first)
    owned.wait_for_state(second, "finished")
    wait_until_complete(page)


def test_a_share_link_shows_the_page_live_and_read_only_until_it_is_taken_back(owned, page, browser, picture):
    log_in(page, owned)
    run = launch(page, owned, "pipeline-x-data", steps="200")
    wait_until_drawn(page)
    page.get_by_role("button", name="Share").click()
    page.get_by_role("button", name="Make a link").click()
    link = page.locator("#new-link").input_value()
    assert re.fullmatch(rf"{owned.url}/s/[\w-]{{22,}}/", link)
    private = browser.new_context()
    guest = private.new_page()
    assert guest.goto(link).status == 200
    wait_until_drawn(guest)
    before = guest.evaluate("() => window.lockstep.spans")
    wait_until_drawn(guest, spans=before + 50)
    assert guest.get_by_role("button", name="Stop").count() == guest.get_by_role("button", name="Share").count() == 0
    picture(guest, "shared")
    assert guest.goto(f"{owned.url}/runs/{run}/").url.startswith(f"{owned.url}/login/")
    guest.goto(link)
    wait_until_drawn(guest)

    if not page.locator("#share-dialog").is_visible():
        page.get_by_role("button", name="Share").click()
    page.get_by_role("button", name="Take back").click()
    guest.wait_for_function("() => document.querySelector('[data-part=\"connection\"]').textContent !== 'live'")
    assert guest.goto(link).status == 404
    assert guest.goto(f"{owned.url}/s/not-a-token/").status == 404
    private.close()
    owned.stop_run(run)
    owned.wait_for_state(run, "stopped")


def test_the_timeline_labels_actions_and_shows_bubbles_and_details(owned, page, picture):
    log_in(page, owned)
    launch(page, owned, "pipeline-gpipe", steps="4")
    wait_until_complete(page)
    kinds = page.evaluate(
        "() => [...new Set(window.lockstep.timeline.trace.ranks.flat().flatMap("
        "lane => lane.chunks.flatMap(chunk => [...chunk.kind.subarray(0, chunk.spans)])))]"
    )
    expected = {Kind.FORWARD, Kind.BACKWARD, Kind.SEND, Kind.RECEIVE, Kind.WAIT, Kind.OPTIMIZER, Kind.STEP}
    assert expected <= {Kind(kind) for kind in kinds}
    page.locator('[data-part="scroller"]').focus()
    page.keyboard.press("0")
    page.keyboard.press("ArrowRight")
    expect(page.locator('[data-part="details"]')).to_contain_text(re.compile("rank", re.I))
    page.keyboard.press("f")
    picture(page, "selected")
    page.keyboard.press("?")
    expect(page.locator("#keys-dialog")).to_be_visible()


def test_a_rank_that_dies_is_named_with_its_signal_and_last_words(owned, page, picture):
    log_in(page, owned)
    run = launch(page, owned, "pipeline-1f1b", steps="500")
    wait_until_drawn(page, spans=100)
    os.kill(owned.ranks()[2], signal.SIGKILL)
    row = owned.wait_for_state(run, "failed")
    assert row["failure"]["rank"] == 2 and row["failure"]["signal"] in ("SIGKILL", 9)
    expect(page.locator('[data-part="failure"]')).to_contain_text("SIGKILL")
    wait_until_complete(page)
    picture(page, "failed")
    assert digest_in_page(page) == digest_in_store(owned.home, run, ranks=4)


def test_redis_may_die_in_the_middle_and_the_page_still_gets_every_span(owned, page):
    log_in(page, owned)
    run = launch(page, owned, "pipeline-1f1b", steps="16")
    wait_until_drawn(page, spans=200)
    page.evaluate(NOTE_CONNECTION)
    os.kill(owned.pid_of("redis"), signal.SIGKILL)  # it is started again within a second or two
    row = owned.wait_for_state(run, "finished", seconds=60)
    wait_until_complete(page)
    held = digest_in_page(page)
    assert held == digest_in_store(owned.home, run, ranks=4)
    assert owned.run(run)["figures"]["dropped_spans"] == 0 and row["steps_done"] == 16
    stats = page.evaluate("() => window.lockstep.stats")
    assert (stats["missing_frames"], stats["missing_spans"], stats["dropped_spans"]) == (0, 0, 0)
    assert any("Redis is away" in words for words in page.evaluate("() => window.connectionWords"))


def test_a_run_whose_worker_is_killed_is_lost_and_its_page_says_why(owned, page, picture):
    log_in(page, owned)
    run = launch(page, owned, "pipeline-1f1b", steps="500")
    wait_until_drawn(page, spans=100)
    ranks = owned.ranks()
    os.kill(owned.pid_of("worker"), signal.SIGKILL)
    row = owned.wait_for_state(run, "lost", seconds=20)
    expect(page.locator('[data-part="state"]')).to_contain_text("Lost")
    expect(page.locator('[data-part="failure"]')).to_contain_text(row["reason"])
    assert not set(ranks) & set(owned.processes())
    wait_until_complete(page)
    assert digest_in_page(page) == digest_in_store(owned.home, run, ranks=4)
    picture(page, "lost")
    wait_for(lambda: "rank slots" in owned.output.read_text().rpartition("down")[2], 60, "the worker to be there again")


def test_a_run_that_does_not_exist_is_a_404_that_helps(owned, page, picture):
    log_in(page, owned)
    assert page.goto(f"{owned.url}/runs/zzzzzzzzzz/").status == 404
    picture(page, "404")
    expect(page.get_by_role("link", name=re.compile("runs", re.I)).first).to_be_visible()


def test_the_command_line_does_the_same(owned):
    began, before = time.monotonic(), machine_time()
    result = json.loads(owned.manage("launch", "pipeline-1f1b", "--set", "steps=5", "--wait", "--json").stdout)
    assert result["state"] == "finished" and result["url"] == f"{owned.url}/runs/{result['run']}/"
    assert (result["ranks"], result["steps"], result["dropped_spans"]) == (4, 5, 0)
    assert result["spans"] == sum(rank["spans"] for rank in digest_in_store(owned.home, result["run"], ranks=4))
    assert result["loss_last"] < result["loss_first"]
    assert 0 < result["wall_seconds"] < time.monotonic() - began
    assert result["bubble_share_theory"] == pytest.approx(3 / 11)
    assert 3 / 11 - 0.005 < result["bubble_share"] < 1, "a disturbed machine only adds to a bubble"
    if result["realtime"] and stolen_share(before, machine_time()) <= MOST_STOLEN:
        assert result["bubble_share"] == pytest.approx(3 / 11, abs=0.02)
