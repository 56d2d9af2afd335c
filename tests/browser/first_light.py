"""What tests of the whole way share: a visitor's steps, and what the store on disk holds."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.span_digest import span_digest
from tests.stack.stack import Stack
from trainer.folder import run_folder, store_folder
from trainer.trace.store import StoreReader

NAME, PASSWORD = "ada", "seven staggered bars"
ENDED = re.compile("^(finished|failed|stopped|lost)$")


def log_in(page: Page, stack: Stack, name: str = NAME) -> None:
    """The page's browser is this person's from here on; no page is opened."""
    page.context.add_cookies([stack.log_in(name)])


def log_in_by_the_form(page: Page, stack: Stack, name: str = NAME, password: str = PASSWORD) -> None:
    page.goto(f"{stack.url}/login/")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("link", name="Launch").first).to_be_visible()


def launch(page: Page, stack: Stack, preset: str, **fields: str) -> str:
    """From the gallery to the run page; the run's id."""
    page.goto(f"{stack.url}/launch/?preset={preset}")
    for name, value in fields.items():
        page.locator(f'[name="{name}"]').fill(value)
    page.locator("#launch").click()
    page.wait_for_url("**/runs/*/")
    return page.url.rstrip("/").rsplit("/", 1)[-1]


def wait_until_drawn(page: Page, spans: int = 1, seconds: float = 30) -> None:
    page.wait_for_function(f"() => window.lockstep && window.lockstep.firstSpanAtMs && window.lockstep.spans >= {spans}",
                           timeout=seconds * 1000)


def wait_until_complete(page: Page, seconds: float = 60) -> None:
    page.wait_for_function("() => window.lockstep && window.lockstep.complete", timeout=seconds * 1000)


def digest_in_page(page: Page) -> list[dict[str, int]]:
    """Per rank, how many spans the page holds and their checksum."""
    digest: list[dict[str, int]] = page.evaluate("() => window.lockstep.spanDigest()")
    return digest


def digest_in_store(home: Path, run_id: str, ranks: int) -> list[dict[str, int]]:
    """The same from the segments on disk."""
    counts, sums = [0] * ranks, [0] * ranks
    reader = StoreReader(store_folder(run_folder(home, run_id)))
    for segment in reader.segments:
        for frame in reader.segment_frames(segment):
            counts[frame.rank] += len(frame.spans["start_ns"])
            sums[frame.rank] = (sums[frame.rank] + span_digest(frame.spans)["sum"]) % 2**32
    return [{"spans": count, "sum": total} for count, total in zip(counts, sums, strict=True)]

