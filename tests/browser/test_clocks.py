"""What a run's page says of its ranks' clocks."""

import pytest
from playwright.sync_api import expect

from tests.browser.timeline_server import state as run_state
from trainer.trace.figures import DEFINITIONS

pytestmark = pytest.mark.browser


def with_clocks(uncertainties, residual=None):
    figures = {"rank_clock_uncertainty_ns": uncertainties, "clock_residual_ns": residual}
    return run_state("running") | {"figures": figures}


@pytest.mark.parametrize("scheme, width", [("dark", 1440), ("light", 1440), ("dark", 390)])
def test_every_ranks_uncertainty_stands_among_the_runs_facts(page, opened, picture, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    opened(with_clocks([0, 12_300, 4_100, None], 8_400.0))
    fact = page.locator('[data-part="clocks"]')
    expect(fact).to_have_text("rank 1 ± 12.3 µs, rank 2 ± 4.10 µs against rank 0’s; ends of collectives agree to 8.40 µs")
    lines = ["rank 0: the run’s clock", "rank 1: ± 12.3 µs", "rank 2: ± 4.10 µs", "rank 3: not compared yet"]
    expect(fact).to_have_attribute("title", "\n".join(lines))
    means = page.locator("dt", has_text="Clocks").get_attribute("title")
    assert DEFINITIONS["clock_uncertainty_ns"].definition in means and DEFINITIONS["clock_residual_ns"].definition in means
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    picture(page, f"{scheme}-{width}")


@pytest.mark.parametrize("figures, ranks, words", [
    ({}, 4, "not compared yet"), ({"rank_clock_uncertainty_ns": [0, None]}, 2, "not compared yet"),
    ({}, 1, "one rank, one clock"),
    ({"rank_clock_uncertainty_ns": [0, *[5000] * 8, 90_000]}, 10, "± 5.00 µs against rank 0’s, at most ± 90.0 µs (rank 9)"),
])
def test_the_words_fit_what_is_known_and_how_many_ranks_there_are(bench, figures, ranks, words):
    script = """async (run) => (await import("/static/js/views/clocks.js")).clockWords(run)"""
    said = bench.evaluate(script, {"ranks": ranks, "figures": figures})
    assert said == words
