"""The system's own Chromium, headless. Pictures of what was seen go to test-artifacts/."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.timeline_site import site

ROOT = Path(__file__).parents[2]
ARTIFACTS = ROOT / "test-artifacts"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")

# A new headless Chromium would look up its maker's hosts at every start; the tests stay on this machine.
CHROMIUM_ARGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]


def chromium_path() -> str:
    for name in CHROMIUM_NAMES:
        if path := shutil.which(name):
            return path
    reason = "no Chromium on PATH; install your system's package, such as: apt-get install chromium"
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    return browser_type_launch_args | {"executable_path": chromium_path(), "args": CHROMIUM_ARGS}


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args):
    return browser_context_args | {"viewport": {"width": 1440, "height": 900}}


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
