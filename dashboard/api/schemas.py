"""What the API answers, and the bodies that it takes."""

from __future__ import annotations

from typing import Any

from ninja import Schema
from pydantic import ConfigDict, Field


class Complaint(Schema):
    field: str = Field(description="Dotted path such as `grid.pp`; empty when the whole is at fault")
    given: str
    message: str


class Problem(Schema):
    type: str = "about:blank"
    title: str
    status: int
    errors: list[Complaint] = []


class TeamOut(Schema):
    id: int
    name: str
    role: str | None = Field(None, description="yours, where it is told")


class Me(Schema):
    name: str
    is_administrator: bool
    teams: list[TeamOut]


class PresetOut(Schema):
    key: str
    title: str
    shows: str
    ranks: int
    spec: dict[str, Any]


class WorkerOut(Schema):
    name: str
    host: str
    devices: list[str]
    cores: int
    gpus: int
    ranks: int = Field(description="rank slots in all")
    ranks_free: int
    realtime: bool
    host_ready: bool = Field(description="torch is loaded, ranks start at once")
    runs: list[str]


class RunOut(Schema):
    """As the run's page shows it. Times are milliseconds since 1970, UTC."""

    id: str
    url: str
    name: str
    owner: str | None
    team: TeamOut | None
    note: str
    tags: list[str]
    pinned: bool
    archived: bool
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
    places: dict[str, list[int]]
    theory: dict[str, Any]


class RunPage(Schema):
    count: int
    page: int
    pages: int
    runs: list[RunOut]


class StepOut(Schema):
    step: int
    loss: float | None
    bubble_share: float | None
    period_ns: int | None
    samples_per_second: float | None
    exposed_share: float | None
    complete: bool | None


class StepPage(Schema):
    steps: list[StepOut]
    more: bool


class Stopped(Schema):
    state: str
    stopped: bool


class Body(Schema):
    model_config = ConfigDict(extra="forbid")


class Again(Body):
    schedule: str


class Changes(Body):
    name: str | None = None
    note: str | None = None
    tags: list[str] | None = None
    pinned: bool | None = None
    archived: bool | None = None


class Whose(Body):
    team: int | None = Field(description="the number of one of your teams, null for private")


class LinkWish(Body):
    name: str = ""
    days: int | None = Field(None, description="for how long it works; null for until it is taken back")
    view: str = Field("", description="what stands behind the # of a run's address: it opens there")
    with_comments: bool = False


class LinkOut(Schema):
    """Times are milliseconds since 1970, UTC."""

    id: int
    name: str
    view: str
    with_comments: bool
    uses: int = Field(description="how often its page was opened")
    created: int
    last_used: int | None
    ends: int | None
    by: str | None


class NewLink(LinkOut):
    url: str


class Spot(Body):
    """`run`, `range` (from_ns, to_ns), `span` (those of a range, rank, lane) or `rank`; times in ns on the run's clock."""

    kind: str
    from_ns: float | None = None
    to_ns: float | None = None
    rank: int | None = None
    lane: int | None = None


class NewText(Body):
    text: str = Field(description="Markdown; @name tells a teammate")


class NewComment(NewText):
    about: Spot | None = Field(None, description="the whole run where it is left out")
    parent: int | None = Field(None, description="the thread that it answers in")


class CommentOut(Schema):
    """Times are milliseconds since 1970, UTC; those of `about` are ns on the run's clock."""

    id: int
    parent: int | None
    author: str | None
    is_own: bool
    text: str
    html: str
    about: dict[str, Any]
    made: int
    edited: int | None
    is_deleted: bool


class CommentPage(Schema):
    comments: list[CommentOut]
    through: int
    more: bool


class ExportOut(Schema):
    format: str
    title: str
    for_what: str
    state: str = Field(description="none, waiting, making, ready or failed")
    share: float = Field(description="of the run's spans that are written")
    bytes: int | None
    reason: str


class ComparisonOut(Schema):
    runs: list[dict[str, str]]
    differences: list[dict[str, Any]] = Field(description="`path` of a JobSpec's field, `values` in the runs' order")
    figures: list[dict[str, Any]] = Field(description="`values`, `changes` against the first run, `p` of the test over steps")
    test: str
