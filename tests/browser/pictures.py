"""Pictures of every page over a real stack, dark and light, wide and narrow: `make pictures`.

They go to test-artifacts/look/, and the README's to dashboard/docs/. The run page is taken while its run is live.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser.chromium import ARTIFACTS, CHROMIUM_ARGS, ROOT, chromium_path
from tests.browser.first_light import NAME, PASSWORD, launch, log_in, wait_until_drawn
from tests.stack.stack import Stack, running_stack, wait_for

LOOK = ARTIFACTS / "look"
SIZES = {"wide": (1440, 900), "narrow": (390, 844)}
README_PICTURE = ROOT / "dashboard" / "docs" / "run-page-dark.png"


@contextmanager
def pages(stack: Stack) -> Iterator[list[tuple[str, Page]]]:
    """A logged-in page of each theme and size, by name."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_ARGS)
        opened = []
        for theme in ("dark", "light"):
            for size, (width, height) in SIZES.items():
                context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
                page = context.new_page()
                page.goto(f"{stack.url}/login/")
                _take(page, f"login-{theme}-{size}")
                log_in(page, stack)
                opened.append((f"{theme}-{size}", page))
        yield opened
        chromium.close()


def _take(page: Page, name: str) -> Path:
    path = LOOK / f"{name}.png"
    page.screenshot(path=path, full_page=True)
    print(path)
    return path


def _everywhere(opened: list[tuple[str, Page]], address: str, name: str) -> None:
    for kind, page in opened:
        page.goto(address)
        if "/runs/" in address:
            wait_until_drawn(page)
            page.locator("[data-chart]").last.scroll_into_view_if_needed()  # charts are drawn when they are seen
            page.locator("[data-chart][data-drawn]").last.wait_for()
            page.evaluate("() => scrollTo(0, 0)")
        _take(page, f"{name}-{kind}")


def _readme_picture(page: Page) -> Path:
    """The live run with a span of rank 2 selected, so that the panels below say what it waited for."""
    page.set_viewport_size({"width": 1440, "height": 1040})
    page.locator("[data-chart][data-drawn]").last.wait_for()
    page.locator('[data-part="follow"]').click()
    lanes = page.locator('[data-part="scroller"]')
    width, height = (lanes.bounding_box() or {})["width"], (lanes.bounding_box() or {})["height"]
    lanes.click(position={"x": 0.34 * width, "y": 0.58 * height})
    path = LOOK / "run-live-readme.png"
    page.screenshot(path=path)
    page.set_viewport_size({"width": SIZES["wide"][0], "height": SIZES["wide"][1]})
    return path


def main() -> None:
    LOOK.mkdir(parents=True, exist_ok=True)
    with running_stack() as stack:
        stack.create_user(NAME, PASSWORD)
        with pages(stack) as opened:
            first = opened[0][1]
            _everywhere(opened, f"{stack.url}/", "runs-none")
            _everywhere(opened, f"{stack.url}/launch/?preset=pipeline-1f1b", "launch")
            _everywhere(opened, f"{stack.url}/nowhere/", "404")
            run = launch(first, stack, "pipeline-1f1b", steps="400")
            wait_for(lambda: stack.run(run)["steps_done"] >= 60, 90, "sixty steps")
            shutil.copy(_readme_picture(first), README_PICTURE)
            _everywhere(opened, f"{stack.url}/runs/{run}/", "run-live")
            waiting = launch(first, stack, "pipeline-x-data", steps="8")
            _take(first, "run-queued")
            _everywhere(opened, f"{stack.url}/", "runs")
            stack.stop_run(run)
            stack.wait_for_state(waiting, "finished", seconds=60)
            _everywhere(opened, f"{stack.url}/runs/{waiting}/", "run-finished")


if __name__ == "__main__":
    main()
