"""A page of the runs' list, in a number of queries that does not grow with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.utils.safestring import SafeString, mark_safe

from dashboard.runs import pictures
from dashboard.runs.access import visible_runs
from dashboard.runs.models import Run, State
from dashboard.runs.services import places_in_queue
from dashboard.runs.words import grid_words, schedule_words

A_PAGE = 25


@dataclass(frozen=True)
class Row:
    run: Run
    place: int  # in the queue; 0 when it does not wait
    steps: int
    grid: str
    schedule: str
    picture: SafeString

    @property
    def bubble(self) -> float | None:
        return self.run.figures.get("bubble_share")

    @property
    def theory(self) -> float | None:
        return self.run.figures.get("bubble_share_theory")

    @property
    def loss(self) -> float | None:
        return self.run.figures.get("loss_last")

    @property
    def progress(self) -> int:
        """Percent of its steps."""
        return round(100 * min(self.run.steps_done / self.steps, 1))


def page_of_runs(user: Any, number: Any) -> tuple[Page[Run], list[Row]]:
    page = Paginator(visible_runs(user).select_related("owner"), A_PAGE).get_page(number)
    runs = list(page.object_list)
    places = places_in_queue() if any(run.state == State.QUEUED for run in runs) else {}
    return page, [_row(run, places.get(run.pk, 0)) for run in runs]


def _row(run: Run, place: int) -> Row:
    spec = run.spec_json
    picture = pictures.svg(bytes(run.picture)) if run.picture else ""
    return Row(run, place, spec["steps"], grid_words(spec), schedule_words(spec), mark_safe(picture))

