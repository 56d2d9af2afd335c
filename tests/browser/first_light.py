"""What tests of the whole way share: a visitor's steps, and what the store on disk holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, expect

from tests.stack.stack import Stack
from trainer.folder import run_folder, store_folder
from trainer.trace.store import StoreReader

NAME, PASSWORD = "ada", "seven staggered bars"
ENDED = re.compile("^(finished|failed|stopped|lost)$")


def log_in(page: Page, stack: Stack, name: str = NAME, password: str = PASSWORD) -> None:
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
    """The same from the segments on disk; the checksum is described in static/js/timeline/digest.js."""
    counts, sums = [0] * ranks, [0] * ranks
    reader = StoreReader(store_folder(run_folder(home, run_id)))
    for segment in reader.manifest.segments:
        for frame in reader.segment_frames(segment):
            counts[frame.rank] += len(frame.spans["start_ns"])
            sums[frame.rank] = (sums[frame.rank] + _checksum(frame.spans)) % 2**32
    return [{"spans": count, "sum": total} for count, total in zip(counts, sums, strict=True)]


def _checksum(spans: dict[str, Any]) -> int:
    low = 2**32 - 1
    start = spans["start_ns"].astype(np.int64)
    words = [start & low, start >> 32 & low, spans["duration_ns"].astype(np.int64) & low, spans["bytes"].astype(np.int64) & low]
    words += [spans[name].astype(np.int64) & low for name in ("step", "sequence", "peer", "micro_batch", "stage", "kind", "lane")]
    mixed = np.full(len(start), 17, np.uint64)
    for word in words:
        mixed = (mixed ^ word.astype(np.uint64)) * np.uint64(2654435761) & np.uint64(low)
        mixed ^= mixed >> np.uint64(15)
    return int(mixed.sum() & np.uint64(low))
