"""What tests of the run page do there: where a span lies on the screen, what is in sight, when nothing moves."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page


def view(page: Page) -> dict[str, Any]:
    return page.evaluate("window.lockstep.view()")


def rest(page: Page) -> None:
    """Until nothing moves: two frames and the longest glide."""
    page.wait_for_function("!window.lockstep.timeline.camera.glide")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def middle_of(page: Page, span: dict[str, Any], lane: int = 0) -> tuple[float, float]:
    """Where a span of rank `peer` is on the screen."""
    return tuple(page.evaluate("""([rank, lane, at]) => {
      const { timeline } = window.lockstep, scene = timeline.scene(), box = timeline.parts.scroller.getBoundingClientRect();
      const { topPx, heightPx } = timeline.layout.lanes[lane];
      return [box.left + scene.x(at), box.top + scene.y(rank) + topPx + heightPx / 2];
    }""", [span["rank"], lane, (span["start"] + span["end"]) / 2]))


def find(made: Any, rank: int, kind: int, step: int, micro_batch: int) -> dict[str, Any]:
    wanted = (kind, step, micro_batch)
    row = next(row for row in made[0][rank] if (row["kind"], row["step"], row.get("micro_batch", -1)) == wanted)
    return {"rank": rank, **row}


def show_step(page: Page, made: Any, step: int) -> None:
    row = made[1][step]
    page.evaluate("([from, to]) => window.lockstep.setView(from, to)", [row["start_ns"] - 5e6, row["end_ns"] + 5e6])
    rest(page)
