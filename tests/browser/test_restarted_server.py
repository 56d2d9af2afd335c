"""A server that is killed, and one that is asked to end, under several viewers: each is complete in the end."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest
from playwright.sync_api import Page

from tests.browser.first_light import (
    NAME,
    PASSWORD,
    digest_in_page,
    digest_in_store,
    launch,
    log_in,
    wait_until_complete,
    wait_until_drawn,
)
from tests.stack.socket_viewer import Viewer
from tests.stack.stack import running_stack, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.stack, pytest.mark.timed]

SOCKETS = 4
NOTE_LOSSES = """() => {
  const pill = document.querySelector('[data-part="connection"]');
  let wasLive = pill.textContent === "live";
  window.timesLost = window.timesBack = 0;
  new MutationObserver(() => {
    const isLive = pill.textContent === "live";
    if (wasLive && !isLive) window.timesLost++;
    if (!wasLive && isLive) window.timesBack++;
    wasLive = isLive;
  }).observe(pill, { childList: true, subtree: true, characterData: true });
}"""


@pytest.fixture(scope="module")
def stack():
    with running_stack() as running:
        running.create_user(NAME, PASSWORD)
        yield running


@pytest.fixture
def guest(browser) -> Page:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    yield context.new_page()
    context.close()


def test_pages_and_sockets_are_complete_after_the_server_was_killed_and_ended_under_them(stack, page, guest):
    log_in(page, stack)
    run = launch(page, stack, "pipeline-1f1b", steps="500")
    token = stack.python(f"links.share(Run.objects.get(pk={run!r}), None)[1]")
    guest.goto(f"{stack.url}/s/{token}/")
    pages = (page, guest)
    with ExitStack() as opened, ThreadPoolExecutor(SOCKETS) as threads:
        viewers = [opened.enter_context(closing(Viewer(stack, token))) for _ in range(SOCKETS)]
        for viewer in viewers:
            viewer.pull()
        ends = [threads.submit(viewer.read_to_the_end) for viewer in viewers]
        try:
            for each in pages:
                wait_until_drawn(each, spans=100)
                each.evaluate(NOTE_LOSSES)
            for time, how in enumerate((signal.SIGKILL, signal.SIGTERM), 1):
                server = stack.pid_of("web")
                os.kill(server, how)
                wait_for(lambda gone=server: not os.path.exists(f"/proc/{gone}"), 20, "the server to be gone")
                for each in pages:
                    each.wait_for_function("time => window.timesBack >= time", arg=time)
                    wait_until_drawn(each, spans=each.evaluate("() => lockstep.spans") + 50)
        finally:
            stack.stop_run(run)  # which it had not come to the end of
        for each in pages:
            wait_until_complete(each)
        for end in ends:
            end.result(60)
    recorded = stack.run(run)["figures"]["spans"]
    in_store = digest_in_store(stack.home, run, ranks=4)
    assert sum(rank["spans"] for rank in in_store) == recorded
    for each in pages:
        assert each.evaluate("() => window.timesLost") >= 2
        assert digest_in_page(each) == in_store
    for viewer in viewers:
        assert viewer.connections >= 3
        assert viewer.counted.spans == recorded
