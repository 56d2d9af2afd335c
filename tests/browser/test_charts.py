"""A chart on a page under the product's content security policy: drawn, in the theme's colours, at a fixed height."""

import json
from itertools import pairwise

import pytest

from dashboard.charts import bubble
from tests.browser.static_server import STATIC, serving, until
from trainer.presets import preset

pytestmark = pytest.mark.browser

PLOTLY = (STATIC / "vendor/plotly/plotly-basic.min.js").read_bytes()
DRAW = """async () => {
  const { chart } = await import("/js/views/chart.js");
  window.shown = chart(document.querySelector("[data-chart]"));
  await shown.refresh();
}"""


def page_of(steps):
    rows = [{"step": step, "bubble_share": 0.28} for step in range(steps)]
    figure = bubble.chart(preset("pipeline-1f1b").spec, rows).as_dict()
    html = (
        "<!doctype html><html data-theme='light'><head><link rel=stylesheet href=/css/tokens.css></head>"
        "<body><div data-chart=/chart.json data-plotly=/plotly.min.js></div></body></html>"
    )
    return {
        "/": ("text/html", html.encode()),
        "/plotly.min.js": ("text/javascript", PLOTLY),
        "/chart.json": ("application/json", json.dumps(figure).encode()),
    }


@pytest.fixture
def drawn(page):
    """The page with its chart, and what the browser complained of."""
    complaints = []
    page.on("console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    with serving(page_of(12)) as address:
        page.goto(address)
        page.evaluate(DRAW)
        until(page, "document.querySelector('.js-plotly-plot')")
        yield complaints


def test_it_draws_without_a_complaint(page, drawn):
    assert [complaint for complaint in drawn if "favicon" not in complaint and "404" not in complaint] == []
    assert page.evaluate("document.querySelector('[data-chart]').dataset.drawn") == "12"
    assert page.evaluate("document.querySelectorAll('.scatterlayer .trace').length") == 2
    assert not page.evaluate("!!document.querySelector('.modebar-btn')")


def test_it_says_in_words_what_it_shows(page, drawn):
    label = page.evaluate("document.querySelector('[data-chart]').getAttribute('aria-label')")
    assert "28.0% at step 11" in label and page.evaluate("document.querySelector('[data-chart]').getAttribute('role')") == "img"


def test_its_height_is_fixed_from_the_start(page):
    with serving(page_of(3)) as address:
        page.goto(address)
        heights = page.evaluate("""async () => {
          const element = document.querySelector("[data-chart]");
          const { chart } = await import("/js/views/chart.js");
          window.shown = chart(element);
          const before = element.offsetHeight;
          await shown.refresh();
          return [before, element.offsetHeight];
        }""")
    assert heights == [220, 220]


def test_a_change_of_theme_changes_its_colours(page, drawn):
    def stroke():
        return page.evaluate("document.querySelector('.scatterlayer .trace .js-line').style.stroke")

    light = stroke()
    page.evaluate("""() => {
      document.documentElement.dataset.theme = "dark";
      document.dispatchEvent(new CustomEvent("themechange"));
    }""")
    until(page, f"document.querySelector('.scatterlayer .trace .js-line').style.stroke !== {light!r}")


def test_it_draws_at_most_once_a_second_and_never_misses_the_last_call(page, drawn):
    began_ms = page.evaluate("""async () => {
      await Promise.all(Array.from({ length: 20 }, () => shown.refresh()));
      await Promise.all(Array.from({ length: 20 }, () => shown.refresh()));
      const fetched = performance.getEntriesByType("resource").filter(({ name }) => name.endsWith("chart.json"));
      return fetched.map(({ startTime }) => startTime);
    }""")
    assert len(began_ms) == 3  # the fixture's, and one for each twenty
    assert all(later - earlier > 990 for earlier, later in pairwise(began_ms))


def test_the_policy_of_this_test_is_the_products():
    settings = (STATIC.parent / "dashboard" / "settings.py").read_text()
    assert "unsafe-eval" not in settings and '"script-src": [SELF, NONCE]' in settings
