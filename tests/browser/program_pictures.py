"""Pictures of the account's page, a filled list, its menus, a comparison and the exports.

`python -m tests.browser.program_pictures` takes them. They go to test-artifacts/look/ as those of tests.browser.pictures do.
"""

from __future__ import annotations

from playwright.sync_api import Page

from tests.browser.first_light import NAME, PASSWORD, launch
from tests.browser.pictures import LOOK, pages
from tests.stack.stack import running_stack


def main() -> None:
    LOOK.mkdir(parents=True, exist_ok=True)
    with running_stack() as stack:
        stack.create_user(NAME, PASSWORD)
        with pages(stack) as opened:
            first = opened[0][1]
            ids = [launch(first, stack, preset, steps="20") for preset in ("pipeline-1f1b", "pipeline-gpipe", "ddp-digits")]
            for run in ids:
                stack.wait_for_state(run, "finished", seconds=120)
            stack.python(f"[curation.change(Run.objects.get(pk={ids[0]!r}), dict(tags=['baseline', 'slow'], pinned=True, "
                         "note='The one that others are held against.'))] and 1")
            for kind, page in opened:
                narrow = "narrow" in kind
                for name, address in {
                    "account": "/account/", "password": "/account/password/",
                    "list": "/?q=bubble>20%25&sort=-bubble", "list-error": "/?q=colour:red",
                    "compare": f"/runs/compare/?run={ids[0]}&run={ids[1]}", "exports": f"/runs/{ids[0]}/exports/",
                    "run-about": f"/runs/{ids[0]}/",
                }.items():
                    page.goto(stack.url + address)
                    if name == "compare":
                        page.locator("[data-chart]").scroll_into_view_if_needed()  # a chart is drawn when it comes into sight
                        page.locator("[data-chart][data-drawn]").wait_for()
                    _take(page, f"{name}-{kind}")
                _open(page, stack.url, narrow, kind, ids[0])


def _open(page: Page, url: str, narrow: bool, kind: str, run: str) -> None:
    """What drops down or comes up."""
    page.goto(f"{url}/")
    page.locator(".tick input").first.check()
    page.locator(".tick input").nth(1).check()
    _take(page, f"list-ticked-{kind}", full=False)
    page.goto(f"{url}/")
    page.get_by_text("Filter", exact=True).click()
    _take(page, f"list-filter-{kind}", full=False)
    page.goto(f"{url}/runs/{run}/")
    page.get_by_text("Export", exact=True).click()
    _take(page, f"run-export-{kind}", full=False)
    page.get_by_text("More", exact=True).click()
    _take(page, f"run-more-{kind}", full=False)
    page.get_by_role("button", name="Name, tags and note").click()
    _take(page, f"run-edit-{kind}", full=False)
    page.goto(f"{url}/runs/{run}/")
    page.locator(".run-job summary").first.click()
    _take(page, f"run-schedules-{kind}", full=False)


def _take(page: Page, name: str, full: bool = True) -> None:
    path = LOOK / f"{name}.png"
    page.screenshot(path=path, full_page=full)
    print(path)


if __name__ == "__main__":
    main()
