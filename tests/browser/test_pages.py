"""List, launch form, login and reference in a real browser: what their scripts and styles do."""

import pytest
from django.conf import settings
from playwright.sync_api import expect

from dashboard.runs import fleet, services
from dashboard.runs.models import Run, State
from tests.people import gather
from trainer.presets import PRESETS

pytestmark = pytest.mark.browser

WORKER = fleet.Worker(
    name="w1", host="box", pid=1, devices=["cpu"], cores=2, gpus=0, ranks=16, ranks_free=12,
    realtime=True, host_ready=True, runs=[], beat_unix=0.0,
)


@pytest.fixture(scope="session", autouse=True)
def orm_beside_playwright():
    """Playwright's event loop runs in this thread, in which Django would not let anybody use its models."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield


@pytest.fixture
def people(monkeypatch, transactional_db):
    monkeypatch.setattr(fleet, "workers", lambda client=None: [WORKER])
    monkeypatch.setattr("dashboard.runs.door.put_in_queue", lambda run_id, device: None)
    return gather(PRESETS["pipeline-1f1b"].spec)


@pytest.fixture
def log_in(people, live_server):
    """Make `page` the member's browser."""

    def as_member(page):
        session = people.client("member").cookies[settings.SESSION_COOKIE_NAME].value
        page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}])
        return page

    return as_member


@pytest.fixture
def launch_page(page, log_in, live_server):
    log_in(page).goto(f"{live_server.url}/launch/")
    return page


def test_the_form_says_while_one_types_what_would_not_work_and_draws_what_would(launch_page):
    page = launch_page
    stages = page.get_by_label("Pipeline stages")
    stages.fill("3")
    expect(page.locator('[data-field="grid.pp"] [data-error]')).to_have_text(
        "4 layers do not divide into 3 stages; 1, 2 or 4 would do, or the cuts 2, 1, 1 (schedule.layers)"
    )
    expect(stages).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#verdict")).to_contain_text("Pipeline stages: 4 layers do not divide into 3 stages")
    page.locator("#verdict a").click()
    expect(stages).to_be_focused()
    stages.fill("2")
    page.get_by_label("Data copies").fill("4")
    expect(page.locator("#verdict")).to_have_text("This can run")
    expect(page.locator('[data-field="grid.pp"] [data-error]')).to_be_hidden()
    expect(page.locator("td.rank")).to_have_count(8)
    expect(page.locator("#command")).to_have_text("manage.py launch pipeline-1f1b --set grid.dp=4 --set grid.pp=2")


def test_presets_are_found_by_the_beginnings_of_their_words(launch_page):
    page = launch_page
    page.get_by_label("Filter the presets").fill("ring")
    shown = page.locator("[data-preset]:not([hidden]) b")
    expect(shown.filter(has_text="Ring attention")).to_have_count(1)
    expect(shown.filter(has_text="Experts")).to_have_count(0)  # which "bring" tokens back
    expect(page.get_by_role("link", name="Recipes", exact=True)).to_be_hidden()


def test_a_schedule_of_ones_own_is_typed_in_and_its_faults_are_said_beside_it(launch_page):
    page = launch_page
    own = page.get_by_label("Your schedule")
    expect(own).to_be_hidden()
    page.get_by_label("Order of work").select_option("csv")
    expect(page.locator('[data-field="schedule.csv"] [data-error]')).to_contain_text("it has 0 rows")
    page.get_by_label("Pipeline stages").fill("1")
    page.get_by_label("Micro-batches").fill("1")
    own.fill("0F0,0B1")
    expect(page.locator('[data-field="schedule.csv"] [data-error]')).to_contain_text("rank 0, row 1, B1")
    own.fill("0F0,0B0")
    expect(page.locator("#verdict")).to_have_text("This can run")


def test_fields_of_the_other_model_are_out_of_the_way(launch_page):
    page = launch_page
    fields = {kind: page.locator(f'[name^="model.{kind}."]') for kind in ("gpt", "moe", "perceptron")}
    for kind in ("moe", "perceptron", "gpt"):
        page.get_by_label("Kind").select_option(kind)
        shown = {one: [field.is_visible() for field in each.all()] for one, each in fields.items()}
        assert all(all(visible) if one == kind else not any(visible) for one, visible in shown.items()), shown


def test_a_job_with_experts_is_told_what_would_do(launch_page):
    page = launch_page
    page.get_by_label("Expert parts").fill("2")
    expect(page.locator('[data-field="grid.ep"] [data-error]')).to_have_text(
        "this model has no experts; 1 would do, or the model 'moe'"
    )
    page.get_by_label("Kind").select_option("moe")
    page.get_by_label("Batch", exact=True).fill("64")
    expect(page.locator("#verdict")).to_have_text("This can run")
    expect(page.locator("#plan")).to_contain_text("experts 1")


def test_durations_at_real_pace_are_out_of_the_way(launch_page):
    page = launch_page
    page.locator('[name="pace.kind"]').select_option("real")
    expect(page.locator('[name="pace.forward_ms"]')).to_be_hidden()


def test_what_most_jobs_leave_alone_is_folded_until_it_is_changed_or_wrong(launch_page):
    page = launch_page
    recipe = page.locator("details.section-recipe")
    expect(recipe).not_to_have_attribute("open", "")
    expect(recipe.locator("summary")).to_contain_text("as it comes")
    recipe.locator("summary").press("Enter")
    page.get_by_label("Decay", exact=True).select_option("cosine")
    expect(recipe.locator("summary")).to_contain_text("Decay changed")
    page.get_by_label("Warm-up").fill("-1")
    recipe.locator("summary").press("Enter")
    page.get_by_label("Steps", exact=True).fill("9")  # checked again, and what is wrong comes into sight
    expect(page.locator('[data-field="optimizer.warmup_steps"] [data-error]')).to_be_visible()


def test_control_and_enter_launch_once(launch_page, people):
    page = launch_page
    page.get_by_label("Steps", exact=True).fill("7")
    page.keyboard.press("Control+Enter")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/runs/*/")
    (run,) = Run.objects.exclude(pk=people.run.pk)
    assert run.spec.steps == 7


def test_what_was_refused_has_the_focus(launch_page):
    page = launch_page
    page.get_by_label("Batch", exact=True).fill("many")
    page.get_by_role("button", name="Launch Ctrl").click()
    expect(page.get_by_text("This job cannot run yet.")).to_be_visible()
    expect(page.get_by_label("Batch", exact=True)).to_be_focused()
    expect(page.get_by_label("Batch", exact=True)).to_have_value("many")


def test_launching_works_without_scripts(new_context, log_in, live_server, people):
    page = log_in(new_context(java_script_enabled=False).new_page())
    page.goto(f"{live_server.url}/launch/?preset=ddp-digits")
    expect(page.locator('[name="model.gpt.heads"]')).to_be_hidden()
    page.get_by_label("Steps", exact=True).fill("9")
    page.get_by_role("button", name="Launch Ctrl").click()
    page.wait_for_url("**/runs/*/")
    (run,) = Run.objects.exclude(pk=people.run.pk)
    assert (run.spec.steps, run.spec.grid.dp) == (9, 4)


def test_the_list_follows_its_runs_and_leaves_alone_what_did_not_change(page, log_in, live_server, people):
    log_in(page).goto(live_server.url)
    link = page.get_by_role("link", name=people.run.name)
    link.focus()
    row = page.locator(f'[data-key="{people.run.pk}"]')
    expect(row).to_contain_text("Queued")
    services.claim(people.run.pk, "w1")
    services.move(people.run.pk, State.RUNNING, steps_done=12)
    other = services.launch(PRESETS["ddp-digits"].spec, people.user("member"))
    expect(row).to_contain_text("Running", timeout=6000)
    expect(row).to_contain_text("12 / 30")
    expect(page.locator("tbody tr").first).to_have_attribute("data-key", other.pk)
    expect(link).to_be_focused()


def test_the_chosen_theme_stays(page, live_server, people):
    page.emulate_media(color_scheme="light")
    page.goto(f"{live_server.url}/login/")
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "light")
    page.get_by_role("button", name="Switch between the dark and the light theme").click()
    expect(root).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(root).to_have_attribute("data-theme", "dark")


@pytest.mark.parametrize("path", ["/", "/launch/", "/login/", "/nowhere/", "/api/v1/docs"])
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_pages_fit_a_phone_and_break_no_rule_of_the_browser(page, log_in, live_server, picture, path, scheme):
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if "Content Security" in said.text else None)
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 390, "height": 844})
    if path != "/login/":
        log_in(page)
    page.goto(live_server.url + path)
    if path == "/api/v1/docs":
        expect(page.get_by_text("/api/v1/runs/{run_id}/stop")).to_be_visible(timeout=30_000)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert complaints == []
    picture(page, scheme)
