"""Pages in the system's own Chromium. Pictures of what was seen go to test-artifacts/."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from dashboard.charts import bubble, loss
from dashboard.runs.ideal import ideal
from tests.browser.chromium import ARTIFACTS, CHROMIUM_ARGS, chromium_path
from tests.browser.first_light import NAME, PASSWORD
from tests.browser.timeline_server import RANKS, SPEC, STEPS, Server, html
from tests.browser.timeline_server import state as run_state
from tests.browser.timeline_site import pipeline, site
from tests.stack.stack import Stack, running_stack


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    return browser_type_launch_args | {"executable_path": chromium_path(), "args": CHROMIUM_ARGS}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args):
    return browser_context_args | {"viewport": {"width": 1440, "height": 900}}


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """A whole stack and its owner, NAME, for tests that launch runs of their own and leave it as they found it."""
    with running_stack() as running:
        running.create_user(NAME, PASSWORD)
        yield running


@pytest.fixture
def picture(request):
    """picture(page, "name"): keep what the page shows, beside the test's name."""

    def take(page, name):
        folder = ARTIFACTS / "pictures"
        folder.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=folder / f"{request.node.name}-{name}.png", full_page=True)

    return take


def pytest_collection_modifyitems(items):
    """Browser tests come last: Playwright keeps an event loop running in this thread until the session ends, and
    neither a test with a loop of its own nor Django's ORM works beside it."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure in a real stack is explained by its logs."""
    report = yield
    stack = item.funcargs.get("stack")
    if report.failed and stack is not None:
        report.sections.append(("the stack's logs", stack.logs()))
    return report


@pytest.fixture(scope="module")
def timeline_address() -> Iterator[str]:
    with site() as url:
        yield url


@pytest.fixture
def bench(page: Page, timeline_address: str) -> Page:
    """A page with the timeline's modules in `window.bench`."""
    page.goto(f"{timeline_address}/timeline.html")
    page.wait_for_function("window.bench")
    return page


@pytest.fixture(scope="module")
def made() -> tuple[list[list[dict[str, Any]]], list[dict[str, Any]]]:
    return pipeline(ranks=RANKS, steps=STEPS)


@pytest.fixture
def opened(page: Page, settings: Any) -> Iterator[Callable[..., Server]]:
    """opened(run, …): the run page of `run`, and the server it talks to."""
    settings.STATIC_URL = "/static/"
    stack = []

    def open_page(run: dict[str, Any], can_change: bool = True, address: str = "") -> Server:
        logs = {f"/runs/abcdefghjk/logs/{rank}/": f"rank {rank} says hello" for rank in range(RANKS)}
        chart = {f"/runs/abcdefghjk/charts/{name}.json": json.dumps(drawn.chart(SPEC, []).as_dict())
                 for name, drawn in (("loss", loss), ("bubble", bubble))}
        simulated = {"/runs/abcdefghjk/ideal.json": json.dumps(ideal(SPEC, {}))}
        context = site({"/runs/abcdefghjk/": html(run, can_change), **logs, **chart, **simulated})
        url = context.__enter__()
        stack.append(context)
        server = Server(page, run)
        page.on("pageerror", lambda error: stack.append(error))
        page.goto(f"{url}/runs/abcdefghjk/{address}")
        return server

    yield open_page
    errors = [each for each in stack if isinstance(each, Exception)]
    for each in stack:
        if not isinstance(each, Exception):
            each.__exit__(None, None, None)
    assert not errors, errors


@pytest.fixture
def finished(page: Page, opened: Callable[..., Server], made: Any) -> Page:
    server = opened(run_state())
    server.give(*made, complete=True)
    page.wait_for_function("window.lockstep.complete && window.lockstep.firstSpanAtMs")
    return page
