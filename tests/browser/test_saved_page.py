"""A run saved as one file: opened from disk, without a network, it shows what the server's page showed."""

import pytest

from dashboard.client.lockstep import Lockstep
from tests.browser.first_light import NAME, log_in, wait_until_drawn
from tests.browser.static_server import until

pytestmark = [pytest.mark.browser, pytest.mark.stack]


@pytest.fixture(scope="module")
def run(stack):
    server = Lockstep(stack.url, stack.make_token(NAME, "read", "launch"))
    return server.launch("pipeline-1f1b", {"steps": 4, "name": "</script><b>odd</b>"}).wait()


@pytest.fixture(scope="module")
def saved(run, tmp_path_factory):
    return run.export("html", tmp_path_factory.mktemp("saved"))


def test_it_works_from_disk_without_a_network(stack, run, saved, page, context, picture):
    log_in(page, stack)
    page.goto(f"{stack.url}/runs/{run.id}/")
    wait_until_drawn(page)
    until(page, "window.lockstep.complete")
    live = page.evaluate("() => ({ digest: window.lockstep.spanDigest(), spans: window.lockstep.spans })")
    assert live["spans"] == run.figures["spans"]

    alone = context.browser.new_context(viewport={"width": 1440, "height": 900}, offline=True)
    frozen = alone.new_page()
    asked, trouble = [], []
    frozen.on("request", lambda request: asked.append(request.url))
    frozen.on("console", lambda message: trouble.append(message.text) if message.type in ("error", "warning") else None)
    frozen.on("pageerror", lambda error: trouble.append(str(error)))
    frozen.goto(f"file://{saved}")
    until(frozen, "window.lockstep?.complete")
    frozen.locator("[data-chart][data-drawn]").last.wait_for()
    shown = frozen.evaluate("() => ({ digest: window.lockstep.spanDigest(), spans: window.lockstep.spans })")
    picture(frozen, "saved")
    assert shown == live
    assert frozen.locator("h1").inner_text() == "</script><b>odd</b>"
    assert frozen.locator("[data-chart][data-drawn]").count() == 2
    frozen.locator(".run-panels").scroll_into_view_if_needed()  # a view works only while it is seen
    frozen.locator(".panel-sketch").last.wait_for()
    assert frozen.locator(".panel-sketch").count() == 2, "the pipeline's ideal, and its last step as measured"
    frozen.get_by_role("tab", name="Log", exact=True).click()
    until(frozen, "document.querySelector('[data-part=log]')?.textContent")
    frozen.get_by_role("tab", name="Memory").click()
    frozen.locator("#panel-memory [data-drawn]").wait_for()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert trouble == []
    frozen.keyboard.press("0")
    frozen.locator('[data-part="scroller"]').focus()
    frozen.keyboard.press("ArrowRight")
    until(frozen, "document.querySelector('[data-part=details]').children.length > 0")
    alone.close()


def test_it_names_no_address_of_a_server(saved, stack):
    text = saved.read_text()
    assert stack.url not in text
    assert "/static/" not in text.split("<script>", 1)[0]
    assert not any(f'data-part="{part}"' in text for part in ("people", "lead", "led")) and 'id="tab-comments"' not in text
    assert 'src="/' not in text and 'href="/' not in text
