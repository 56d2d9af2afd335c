"""One finished run, every view of it: step time, bubble, throughput, exposed communication and loss are the same wherever they
stand: cards, Pipeline, Explain, charts, the list, the API, an export and the comparison."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from dashboard.client.lockstep import Lockstep
from dashboard.runs import words
from tests.browser.first_light import NAME, launch, log_in, wait_until_complete
from tests.stack.stack import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.stack]

STEPS = 9
# By the page's own words for numbers.
AS_SHOWN = """async ({ found, shares }) => {
  const pages = [...document.scripts].map(({ src }) => src).find((src) => src.includes("/js/pages/"));
  const { durationNs, figures, percent } = await import(pages.replace(/pages\\/.*$/, "core/format.js"));
  return [{
    step: durationNs(found.step_seconds * 1e9), bubble: percent(found.bubble_share), exposed: percent(found.exposed_share),
    throughput: `${figures(found.samples_per_second)} /s`, loss: found.loss_last.toPrecision(4),
  }, shares.map((share) => percent(share))];
}"""


def test_every_view_of_a_run_says_the_same(stack: Any, page: Page, tmp_path: Path) -> None:
    log_in(page, stack)
    other_id = launch(page, stack, "ddp-digits", steps="6")
    run_id = launch(page, stack, "pipeline-x-data", steps=str(STEPS))
    wait_until_complete(page)
    for one in (other_id, run_id):
        wait_for(lambda one=one: stack.run(one)["sealed_at"], 60, "the run to be sealed")

    def asked(path: str) -> Any:
        answer = page.request.get(f"{stack.url}{path}")
        assert answer.ok, (path, answer.status, answer.text())
        return answer.json()

    found = asked(f"/api/v1/runs/{run_id}")["figures"]
    steps = asked(f"/api/v1/runs/{run_id}/steps")["steps"]
    assert len(steps) == found["steps_figured"] == STEPS

    def of_steps(rows: list[dict[str, Any]]) -> dict[str, float]:
        typical = {name: median(float(row[name]) for row in rows)
                   for name in ("period_ns", "bubble_share", "samples_per_second", "exposed_share")}
        return {"step_seconds": typical.pop("period_ns") / 1e9, **typical, "loss_last": float(rows[-1]["loss"])}

    shared = {name: found[name] for name in of_steps(steps)}
    assert of_steps(steps) == pytest.approx(shared), "the API's steps"
    text = Lockstep(stack.url, stack.make_token(NAME, "read")).run(run_id).export("steps-csv", tmp_path).read_text()
    assert of_steps(list(csv.DictReader(io.StringIO(text)))) == pytest.approx(shared), "the export"
    compared = {line["key"]: line["values"] for line in asked(f"/api/v1/compare?run={run_id}&run={other_id}")["figures"]}
    assert {name: compared[name][0] for name in shared} == pytest.approx(shared), "the comparison"

    for name, values in (("loss", [row["loss"] for row in steps]), ("bubble", [row["bubble_share"] for row in steps])):
        drawn = asked(f"/runs/{run_id}/charts/{name}.json")["figure"]["data"][0]
        assert drawn["y"] == pytest.approx(values), f"the chart of {name}"
    explained = asked(f"/runs/{run_id}/panels/explain.json")
    warm = median(row["period_ns"] for row in steps[1:]) / 1e6
    assert explained["step_ms"] == pytest.approx(warm), "Explain, without the first step"
    assert explained["step_ms"] == pytest.approx(1000 * found["step_seconds"], rel=0.03)

    page.reload()
    wait_until_complete(page)
    shown, bubbles = page.evaluate(AS_SHOWN, {"found": found, "shares": [row["bubble_share"] for row in steps]})
    for name, text in shown.items():
        expect(page.locator(f'[data-figure="{name}"] .figure-value')).to_have_text(re.compile(rf"^\s*{re.escape(text)}\s*$"))
    page.get_by_role("tab", name="Pipeline").click()
    title = page.get_by_role("heading", name=re.compile("^Measured, step"))
    expect(title).to_be_visible()
    step = int(title.inner_text().removeprefix("Measured, step ").partition(":")[0])
    expect(title).to_contain_text(bubbles[step])

    page.goto(f"{stack.url}/?columns=bubble.loss.step")
    row = page.locator(f'tr[data-key="{run_id}"]')
    for text in (words.percent(found["bubble_share"]), words.figure(found["loss_last"]), words.duration(found["step_seconds"])):
        expect(row).to_contain_text(text)
    page.goto(f"{stack.url}/runs/compare/?run={run_id}&run={other_id}")
    shares = [words.percent(found[name]) for name in ("bubble_share", "exposed_share")]
    for text in (*shares, words.duration(found["step_seconds"])):
        expect(page.locator("main")).to_contain_text(text)
    page.goto(f"{stack.url}/launch/?from={run_id}")
    planned = words.duration(found["step_seconds_theory"])
    expect(page.locator("dt:text-is('A step') + dd")).to_have_text(planned)
