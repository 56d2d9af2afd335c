"""Conditions that one may add to a search, or take from it, by a press."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F

from dashboard.runs.access import visible_runs
from dashboard.runs.models import RunTag, State
from dashboard.runs.rows import Asked
from dashboard.runs.words import SCHEDULES

MOST_TAGS = 12
LATEST_RUNS = 500


@dataclass(frozen=True)
class Choice:
    words: str
    address: str  # of the list with this condition put on or off
    is_on: bool


def facets(user: Any, asked: Asked) -> list[tuple[str, list[Choice]]]:
    groups = {
        "State": [(state.label, f"state:{state.value}") for state in State],
        "Model": [("GPT", "model:gpt"), ("perceptron", "model:perceptron")],
        "Schedule": [(words, f"schedule:{name}") for name, words in SCHEDULES.items()],
        "Tag": [(name, f"tag:{name}") for name in _tags(user)],
        "Only": [("mine", "is:mine"), ("pinned", "is:pinned"), ("archived", "is:archived"), ("deleted", "is:deleted"),
                 ("bubble over 30 %", "bubble>30%"), ("from the last day", "age<1d")],
    }
    on = set(asked.query.text.split())
    return [(title, [Choice(words, asked.toggled(term), term in on) for words, term in terms])
            for title, terms in groups.items() if terms]


def _tags(user: Any) -> list[str]:
    """Those used most, among the latest runs: all there are would take longer with every run."""
    latest = visible_runs(user).filter(archived_at=None).order_by(F("pinned_at").desc(nulls_last=True), "-created_at")
    used = RunTag.objects.filter(run__in=latest[:LATEST_RUNS].values("pk")).order_by().values("name").annotate(runs=Count("pk"))
    return sorted(used.order_by("-runs", "name").values_list("name", flat=True)[:MOST_TAGS])
