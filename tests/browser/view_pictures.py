"""Pictures of every view beside the timeline, and of the pages to learn from: `make pictures` takes them too.

Three runs show what there is to see: modelled links and a collective of ours, experts, a rank that is slow.
"""

from __future__ import annotations

from playwright.sync_api import Page

from tests.browser.first_light import NAME, PASSWORD, launch, wait_until_drawn
from tests.browser.pictures import LOOK, pages
from tests.stack.stack import Stack, running_stack

RUNS = {
    "straggler": ("explain", "pipeline", "stragglers", "memory", "learning", "comments", "log"),
    "allreduce-ring": ("explain", "collectives", "topology"),
    "experts": ("experts",),
}
IDEAS = ("", "bubble/", "collectives/")


def main() -> None:
    LOOK.mkdir(parents=True, exist_ok=True)
    with running_stack() as stack:
        stack.create_user(NAME, PASSWORD)
        with pages(stack) as opened:
            runs = {preset: launch(opened[0][1], stack, preset) for preset in RUNS}
            for preset, run in runs.items():
                stack.wait_for_state(run, "finished", seconds=120)
                for kind, page in opened:
                    _views(page, stack, run, f"{preset}-{kind}", RUNS[preset])
            for kind, page in opened:
                for idea in IDEAS:
                    page.goto(f"{stack.url}/learn/{idea}")
                    _kept(page, f"learn-{idea.strip('/') or 'all'}-{kind}")


def _views(page: Page, stack: Stack, run: str, name: str, views: tuple[str, ...]) -> None:
    page.goto(f"{stack.url}/runs/{run}/")
    wait_until_drawn(page)
    for view in views:
        page.locator(f"#tab-{view}").click()
        page.locator(f"#panel-{view}").scroll_into_view_if_needed()
        page.locator(f"#panel-{view} [data-part=panel-body] > :not([hidden])").first.wait_for()
        page.wait_for_load_state("networkidle")
        page.locator(".run-panels").screenshot(path=LOOK / f"view-{view}-{name}.png")


def _kept(page: Page, name: str) -> None:
    page.screenshot(path=LOOK / f"{name}.png", full_page=True)


if __name__ == "__main__":
    main()
