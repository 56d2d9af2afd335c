"""Which runs a search finds, in which order, a page at a time."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Count, F, QuerySet, Window

from dashboard.runs.access import deleted_runs, visible_runs
from dashboard.runs.models import Run
from dashboard.runs.query import Query

SORTS = {
    "created": "created_at", "name": "name", "state": "state", "bubble": "bubble", "loss": "loss",
    "steps": "steps_done", "step": "step_seconds",
}
NEWEST_FIRST = "-created"
_FURTHEST_PAGE = 10**9


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
    """The page nearest to `number`, and its runs with owner and tags, in a few queries however many there are.

    What is sorted is ids alone: rows hold pictures, and a database would carry those along. It counts them on the way,
    since looking for words costs as much as sorting: a page beyond the last one is asked for a second time.
    """
    ids = found.annotate(found=Window(Count("*"))).values_list("pk", "found")
    asked = int(number) if str(number).isdecimal() and 0 < int(number) < _FURTHEST_PAGE else 1
    rows = list(ids[(asked - 1) * size : asked * size])
    paginator = Paginator(found.values_list("pk", flat=True), size)
    paginator.count = rows[0][1] if rows else found.count() if asked > 1 else 0
    page = paginator.get_page(number)
    page.object_list = [pk for pk, _ in rows] if page.number == asked else list(page.object_list)
    runs = Run.objects.filter(pk__in=page.object_list).select_related("owner", "team").prefetch_related("tags")
    by_id = {run.pk: run for run in runs}
    return page, [by_id[run_id] for run_id in page.object_list if run_id in by_id]
