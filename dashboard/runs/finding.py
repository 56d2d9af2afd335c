"""Which runs a search finds, in which order, a page at a time."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import F, QuerySet

from dashboard.runs.access import deleted_runs, visible_runs
from dashboard.runs.models import Run
from dashboard.runs.query import Query

SORTS = {
    "created": "created_at", "name": "name", "state": "state", "bubble": "bubble", "loss": "loss",
    "steps": "steps_done", "step": "step_seconds",
}
NEWEST_FIRST = "-created"


def find(user: Any, query: Query, sort: str = NEWEST_FIRST) -> QuerySet[Run]:
    """`user`'s runs that the query holds for. Archived and deleted ones are there only when it asks for them.

    `sort` is a key of SORTS, with a minus for the largest first; what has no value comes last. Newest first
    puts pinned runs before all.
    """
    runs = (deleted_runs if "deleted" in query.states else visible_runs)(user).filter(query.condition)
    if not query.states & {"archived", "deleted"}:
        runs = runs.filter(archived_at=None)
    key = sort.removeprefix("-")
    if key not in SORTS or sort == NEWEST_FIRST:
        return runs.order_by(F("pinned_at").desc(nulls_last=True), "-created_at", "pk")
    column = F(SORTS[key])
    order = column.desc(nulls_last=True) if sort.startswith("-") else column.asc(nulls_last=True)
    return runs.order_by(order, "-created_at", "pk")


def page_of(found: QuerySet[Run], number: Any, size: int) -> tuple[Page[str], list[Run]]:
    """The page nearest to `number`, and its runs with owner and tags, in four queries however many there are.

    What is sorted is ids alone: rows hold pictures, and a database would carry those along.
    """
    page = Paginator(found.values_list("pk", flat=True), size).get_page(number)
    ids = list(page.object_list)
    by_id = {run.pk: run for run in Run.objects.filter(pk__in=ids).select_related("owner", "team").prefetch_related("tags")}
    return page, [by_id[run_id] for run_id in ids if run_id in by_id]
