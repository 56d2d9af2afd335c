"""Every page and every view of a run: axe-core finds nothing serious in either theme, wide or narrow; the Tab key reaches
all that can be used, and what it reaches can be seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from dashboard.client.lockstep import Lockstep
from tests.browser.chromium import ARTIFACTS
from tests.browser.first_light import NAME, log_in, wait_until_complete
from tests.stack.stack import Stack

pytestmark = [pytest.mark.browser, pytest.mark.stack]

AXE = ARTIFACTS / "axe.min.js"
OURS = {"reference": {"exclude": [["#reference"]]}}  # within, Swagger UI has its own colours
LOOKS = [("dark", 1440), ("dark", 390), ("light", 390), ("light", 1440)]
PAGES = ("list", "launch", "learn", "idea", "compare", "account", "password", "team", "webhooks", "notices", "exports",
         "reference", "shared", "embedded", "saved")
FOUND = """async (within) => {
  const { violations } = await axe.run(within ?? document, { resultTypes: ["violations"] });
  return violations.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
}"""
# Radio buttons of a name are one stop; what is inside a closed <details> or a hidden part is none.
USABLE = """() => {
  const radios = new Set();
  return [...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]')]
    .filter((one) => !one.disabled && one.tabIndex >= 0 && one.getClientRects().length)
    .filter((one) => one.checkVisibility({ visibilityProperty: true }))
    .filter((one) => one.type !== "radio" || (!radios.has(one.name) && radios.add(one.name))).length;
}"""
# What the last Tab reached; 0 by itself says that it left the page.
REACHED = """() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  window.reached ??= new Map();
  if (!window.reached.has(at)) window.reached.set(at, window.reached.size + 1);
  const box = at.getBoundingClientRect();
  // A link that is its row's shows it around the row.
  const looks = [null, "::after"].map((part) => getComputedStyle(at, part));
  const isAcross = box.width > 0 && box.right > 0 && box.left < innerWidth;
  const inside = isAcross && box.height > 0 && box.bottom > 0 && box.top < innerHeight;
  return { number: window.reached.get(at), inside, what: at.outerHTML.slice(0, 120),
    shows: looks.some((one) => one.outlineStyle !== "none" || one.boxShadow !== "none")
      || at.matches("canvas, [role=application], iframe") };
}"""


@pytest.fixture(scope="module")
def addresses(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    team = stack.python(f"teams.make('Readers', User.get(username={NAME!r})).pk")
    server = Lockstep(stack.url, stack.make_token(NAME, "read", "launch", "manage"))
    run = server.launch("experts-x-data", {"steps": 4, "name": "Every view"}).wait()
    other = server.launch("experts", {"steps": 4}).wait()
    shared = run.share()
    saved = run.export("html", tmp_path_factory.mktemp("saved"))
    return {
        "list": f"{stack.url}/", "launch": f"{stack.url}/launch/?preset=three-axes", "learn": f"{stack.url}/learn/",
        "idea": f"{stack.url}/learn/bubble/", "compare": f"{stack.url}/runs/compare/?run={run.id}&run={other.id}",
        "account": f"{stack.url}/account/", "password": f"{stack.url}/account/password/", "team": f"{stack.url}/teams/{team}/",
        "webhooks": f"{stack.url}/teams/{team}/webhooks/",
        "notices": f"{stack.url}/notices/", "exports": f"{stack.url}/runs/{run.id}/exports/",
        "reference": f"{stack.url}/api/v1/docs", "shared": shared, "embedded": shared.replace("/s/", "/embed/"),
        "saved": Path(saved).as_uri(), "run": f"{stack.url}/runs/{run.id}/",
    }


@pytest.fixture
def visit(page: Page, stack: Stack, addresses: dict[str, str]) -> Any:
    log_in(page, stack)

    def go(name: str, theme: str = "dark", width: int = 1440) -> Page:
        page.add_init_script(f"try {{ localStorage.setItem('lockstep-theme', '{theme}') }} catch {{}}")
        page.set_viewport_size({"width": width, "height": 900})
        answer = page.goto(addresses[name])
        assert name == "saved" or (answer is not None and answer.ok), (name, answer and answer.status)
        if name in ("shared", "saved", "run"):
            wait_until_complete(page)
        elif name == "embedded":
            expect(page.locator('[data-part="connection"]')).to_contain_text("complete")
        return page

    return go


def resize(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def serious(page: Page, within: Any = None) -> list[str]:
    """What axe-core finds on the page, or within the element that a selector names."""
    if not page.evaluate("typeof axe !== 'undefined'"):
        page.evaluate(AXE.read_text() + "; 0")
    return page.evaluate(FOUND, within)


needs_axe = pytest.mark.skipif(not AXE.exists(), reason="axe-core is not there: `make axe` fetches it from npm")


@needs_axe
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious_on_a_page(visit: Any, name: str) -> None:
    """A theme and a width of each page come with it, and the other width by its window."""
    found, page, shown = {}, None, None
    for theme, width in LOOKS:
        if theme != shown:
            page, shown = visit(name, theme, width), theme
        else:
            resize(page, width)
        found[f"{theme} {width}"] = serious(page, OURS.get(name))
    assert found == {key: [] for key in found}


@needs_axe
@pytest.mark.parametrize(("theme", "width"), LOOKS)
def test_axe_finds_nothing_serious_in_any_view_of_a_run(visit: Any, theme: str, width: int) -> None:
    page = visit("run", theme, width)
    tabs = page.locator('.run-panels [role="tab"]')
    names = tabs.all_inner_texts()
    assert len(names) >= 9
    found = {"around the views": serious(page)}
    for at, name in enumerate(names):
        tabs.nth(at).click()
        selector = f"#{tabs.nth(at).get_attribute('aria-controls')}"
        panel = page.locator(selector)
        expect(panel).to_be_visible()
        page.wait_for_function("(panel) => panel.textContent.trim().length > 20 || panel.querySelector('svg, canvas, input')",
                               arg=panel.element_handle())
        found[name] = serious(page, selector)
    assert found == {key: [] for key in found}


@pytest.mark.parametrize("name", [*PAGES, "run"])
def test_the_tab_key_reaches_all_that_can_be_used_and_it_can_be_seen(visit: Any, name: str) -> None:
    page = visit(name)
    usable, stops, unseen = page.evaluate(USABLE), 0, []
    for _ in range(2 * usable + 10):
        page.keyboard.press("Tab")
        at = page.evaluate(REACHED)
        if at is None or at["number"] < stops:
            break
        stops = max(stops, at["number"])
        if not (at["inside"] and at["shows"]):
            unseen.append(at["what"])
    assert not unseen
    assert stops >= usable, f"{stops} of {usable} were reached"
