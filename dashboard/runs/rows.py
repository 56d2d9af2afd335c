"""A page of the runs' list, in a number of queries that does not grow with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Page
from django.utils.safestring import SafeString, mark_safe

from dashboard.runs import pictures
from dashboard.runs.finding import NEWEST_FIRST, SORTS, find, page_of
from dashboard.runs.models import Run, State
from dashboard.runs.query import Query, parse
from dashboard.runs.services import places_in_queue
from dashboard.runs.words import grid_words, schedule_words

A_PAGE = 25
# Columns that one may choose, with their heads; state and name are always there.
COLUMNS = {
    "picture": "Picture", "grid": "Grid and schedule", "bubble": "Bubble", "loss": "Last loss", "step": "Step time",
    "steps": "Steps", "device": "Device", "when": "When, by whom",
}
USUAL_COLUMNS = ("picture", "grid", "bubble", "loss", "steps", "when")


@dataclass(frozen=True)
class Asked:
    """What a list's address says."""

    query: Query
    sort: str
    columns: tuple[str, ...]
    page: str = "1"

    @classmethod
    def of(cls, given: Mapping[str, Any], user: Any) -> Asked:
        """From GET parameters; what makes no sense is left out."""
        sort = given.get("sort", NEWEST_FIRST)
        columns = tuple(name for name in COLUMNS if name in given.get("columns", "").split("."))
        return cls(
            query=parse(given.get("q", ""), user),
            sort=sort if sort.removeprefix("-") in SORTS else NEWEST_FIRST,
            columns=columns or USUAL_COLUMNS,
            page=given.get("page", "1"),
        )

    def address(self, **changes: str) -> str:
        """What stands behind the question mark, with `changes`; the first page again, and nothing that is usual."""
        columns = "" if self.columns == USUAL_COLUMNS else ".".join(self.columns)
        values = {"q": self.query.text, "sort": self.sort, "columns": columns} | changes
        if values["sort"] == NEWEST_FIRST:
            del values["sort"]
        return urlencode({key: value for key, value in values.items() if value})

    def sorted_by(self, key: str) -> str:
        """The address of the same list by column `key`: largest first, the other way when it is so already."""
        first, other = (f"-{key}", key) if key != "name" else (key, f"-{key}")
        return self.address(sort=other if self.sort == first else first)

    def toggled(self, term: str) -> str:
        """The address with `term` added to the search, or taken from it."""
        words = self.query.text.split()
        return self.address(q=" ".join([word for word in words if word != term] if term in words else [*words, term]))


@dataclass(frozen=True)
class Row:
    run: Run
    place: int  # in the queue; 0 when it does not wait
    grid: str
    schedule: str
    picture: SafeString

    @property
    def theory(self) -> float | None:
        """None of a job without a pipeline: there the formula is 0, and nothing to hold a bubble against."""
        return self.run.figures.get("bubble_share_theory") if self.run.spec_json["grid"]["pp"] > 1 else None

    @property
    def progress(self) -> int:
        """Percent of its steps."""
        return round(100 * min(self.run.steps_done / self.run.steps, 1))


def page_of_runs(user: Any, asked: Asked) -> tuple[Page[str], list[Row]]:
    page, runs = page_of(find(user, asked.query, asked.sort), asked.page, A_PAGE)
    places = places_in_queue() if any(run.state == State.QUEUED for run in runs) else {}
    return page, [_row(run, places.get(run.pk, 0), "picture" in asked.columns) for run in runs]


def _row(run: Run, place: int, with_picture: bool) -> Row:
    picture = pictures.svg(bytes(run.picture)) if run.picture and with_picture else ""
    return Row(run, place, grid_words(run.spec_json), schedule_words(run.spec_json), mark_safe(picture))
