"""A picture of the timeline: what is shown, twice as fine, with title, range and legend; in an SVG text is text."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page

from tests.browser.chromium import ARTIFACTS
from tests.browser.run_page import rest, show_step
from tests.browser.timeline_server import RANKS, state

pytestmark = pytest.mark.browser

SVG = "{http://www.w3.org/2000/svg}"


def saved(page: Page, kind: str) -> Path:
    page.locator("summary", has_text="Picture").click()
    with page.expect_download() as download:
        page.locator(f'[data-part="picture-{kind}"]').click()
    assert download.value.suggested_filename == f"{state()['id']}-timeline.{kind}"
    folder = ARTIFACTS / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"timeline-{page.evaluate('document.documentElement.dataset.theme')}.{kind}"
    download.value.save_as(path)
    return path


def test_an_svg_has_every_word_of_the_view_as_text(finished: Page, made: Any) -> None:
    show_step(finished, made, 5)
    root = ElementTree.parse(saved(finished, "svg")).getroot()
    words = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    assert words[0] == state()["name"] and words[1].startswith(f"run {state()['id']} · ") and f"{RANKS} ranks" in words[1]
    for rank in range(RANKS):
        assert f"rank {rank}" in words
    labels = finished.evaluate("window.lockstep.timeline.painter.labels")
    assert labels > RANKS * 4 and sum(word in {"F0", "B0", "F3", "B3"} for word in words) >= RANKS * 4
    assert "forward" in words and "bubble (idle inside a step)" in words
    assert all(0 <= float(text.get("y", "-1")) <= float(root.get("height", "0")) for text in root.iter(f"{SVG}text"))
    [image] = root.iter(f"{SVG}image")
    assert image.get("href", "").startswith("data:image/png;base64,")


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_a_png_is_twice_as_fine_as_the_page(finished: Page, made: Any, theme: str) -> None:
    finished.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
    finished.evaluate("document.dispatchEvent(new Event('themechange'))")
    show_step(finished, made, 5)
    width, height = struct.unpack(">II", saved(finished, "png").read_bytes()[16:24])
    shown = finished.evaluate("(({ widthPx, heightPx }) => [widthPx, heightPx])(window.lockstep.timeline)")
    assert width == 2 * shown[0] and height > 2 * shown[1]


def test_the_page_goes_on_after_it(finished: Page, made: Any) -> None:
    """The picture's painter took note of what had changed: the page's own must not miss it."""
    show_step(finished, made, 5)
    canvas = "document.querySelector('[data-part=base]').toDataURL()"
    finished.evaluate("""() => new Promise((done) => {
      const { timeline } = window.lockstep;
      timeline.addEventListener("totals", done, { once: true });
      timeline.updateShares();
    })""")  # of the view as it is now; they follow a move of it a moment later
    rest(finished)
    before = finished.evaluate(canvas)
    saved(finished, "svg")
    finished.mouse.move(5, 5)
    rest(finished)
    assert finished.evaluate(canvas) == before
