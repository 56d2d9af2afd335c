"""What the API answers."""

from __future__ import annotations

from typing import Any

from ninja import Schema
from pydantic import Field


class Complaint(Schema):
    field: str = Field(description="Dotted path such as `grid.pp`; empty when the whole is at fault")
    given: str
    message: str


class Problem(Schema):
    type: str = "about:blank"
    title: str
    status: int
    errors: list[Complaint] = []


class PresetOut(Schema):
    key: str
    title: str
    shows: str
    ranks: int
    spec: dict[str, Any]


class RunOut(Schema):
    """As the run's page shows it. Times are milliseconds since 1970, UTC."""

    id: str
    url: str
    name: str
    state: str
    reason: str
    failure: dict[str, Any] | None
    has_ended: bool
    place_in_queue: int
    steps: int
    steps_done: int
    ranks: int
    created: int
    started: int | None
    ended: int | None
    sealed: int | None
    worker: str
    realtime: bool | None
    figures: dict[str, Any]
    spec: dict[str, Any]
    grid: list[dict[str, int]]
    stages: list[list[int]]
    theory: dict[str, Any]


class RunPage(Schema):
    count: int
    page: int
    pages: int
    runs: list[RunOut]


class Stopped(Schema):
    state: str
    stopped: bool
