"""Runs side by side in a real browser: one scale of time, one cursor, steps turned over."""

from dataclasses import replace

import pytest
from django.conf import settings as django_settings
from playwright.sync_api import expect

from dashboard.runs import services
from dashboard.runs.models import Run, State
from tests.browser.test_pages import log_in, orm_beside_playwright, people  # noqa: F401 (fixtures)
from tests.browser.timeline_site import encoded, pipeline
from tests.unit.test_pictures import stored
from trainer.folder import run_folder, store_folder
from trainer.presets import PRESETS
from trainer.trace.frame import decode
from trainer.trace.store import StoreWriter

pytestmark = pytest.mark.browser


@pytest.fixture
def pair(people, settings, tmp_path):  # noqa: F811
    """1F1B of 12 steps as it is measured, and GPipe of 7 steps as it is taught."""
    settings.CONF = replace(django_settings.CONF, home=tmp_path)
    other = services.launch(PRESETS["pipeline-gpipe"].spec, people.user("member"), team=people.team)
    spans, figures = pipeline()
    writer = StoreWriter(store_folder(run_folder(tmp_path, people.run.pk)))
    for rank, rows in enumerate(spans):
        writer.add(decode(encoded(rank, 1, rows, 0)), "1-0")
    writer.add_steps([row | {"period_ns": row["duration_ns"], "samples_per_second": 45.0} for row in figures])
    writer.seal(complete=True)
    stored(store_folder(run_folder(tmp_path, other.pk)))
    Run.objects.update(state=State.FINISHED, figures={"bubble_share_theory": 3 / 11, "loss_last": 2.4, "dropped_spans": 0})
    return [people.run, other]


@pytest.mark.parametrize("theme, width", [("dark", 1440), ("light", 1440), ("dark", 390)])
def test_two_runs_stand_on_one_scale_under_one_cursor(page, log_in, live_server, pair, picture, theme, width):  # noqa: F811
    trouble = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)
    log_in(page).goto(f"{live_server.url}/runs/compare/?run={pair[0].pk}&run={pair[1].pk}")
    part = lambda name: page.locator(f'[data-part="{name}"]')  # noqa: E731
    expect(part("words")).to_have_text("of 0 to 6")
    expect(part("step")).to_have_value("6")
    expect(page.locator(".side-strips figure")).to_have_count(2)
    page.locator(".side-strips canvas").first.hover(position={"x": 72, "y": 10})
    expect(part("cursor")).to_contain_text("after the step's first work")
    for words in page.locator(".side-at").all():
        expect(words).to_contain_text("rank 0 F")
    page.locator("[data-chart]").scroll_into_view_if_needed()  # it loads when it is seen
    page.locator("[data-chart][data-drawn]").wait_for()
    page.evaluate("scrollTo(0, 0)")
    picture(page, f"{theme}-{width}")
    before = part("cursor").text_content()
    part("strips").focus()
    page.keyboard.press("ArrowRight")
    expect(part("cursor")).not_to_have_text(before)
    part("before").click()
    expect(part("step")).to_have_value("5")
    part("step").fill("99")
    part("step").press("Enter")
    expect(part("words")).to_contain_text("0 to 6, would do")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not trouble
