"""What the API takes and answers about many runs, saved views, notices, and teams."""

from __future__ import annotations

from typing import Annotated, Literal

from ninja import Schema
from pydantic import Field

from dashboard.api.schemas import Body
from dashboard.roles import Role
from dashboard.runs.views.bulk import MOST_AT_ONCE


class BulkAct(Body):
    do: Literal["stop", "tag", "archive", "unarchive", "delete", "restore"]
    runs: list[Annotated[str, Field(pattern=r"^[a-z0-9]{1,16}$")]] = Field(min_length=1, max_length=MOST_AT_ONCE)
    tags: list[str] = Field([], description="to add, where `do` is tag")


class LeftOut(Schema):
    run: str
    why: str


class Acted(Schema):
    done: list[str]
    left: list[LeftOut]


class NewView(Body):
    name: str
    address: str = Field(description="such as `q=state:failed&sort=-bubble`")


class ViewOut(Schema):
    id: int
    name: str
    address: str
    url: str


class NoticeOut(Schema):
    """Times are milliseconds since 1970, UTC."""

    id: int
    kind: str
    title: str
    words: str
    run: str
    path: str
    made: int
    is_read: bool


class NoticePage(Schema):
    count: int
    page: int
    pages: int
    notices: list[NoticeOut]


class ReadNotices(Schema):
    read: int = Field(description="how many were unread")


class NewTeam(Body):
    name: str = Field(min_length=1, max_length=60, pattern=r"^[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*$")


class MemberOut(Schema):
    name: str
    role: Role
    since: int


class InvitationOut(Schema):
    """Times are milliseconds since 1970, UTC."""

    id: int
    role: Role
    by: str | None
    ends: int
    uses: int
    most_uses: int


class TeamPage(Schema):
    id: int
    name: str
    role: Role = Field(description="yours")
    members: list[MemberOut]
    invitations: list[InvitationOut] = Field(description="those that work; its owners alone are told")


class NewRole(Body):
    role: Role


class NewInvitation(Body):
    role: Role = Role.VIEWER
    days: int = Field(7, ge=1, le=90)
    most_uses: int = Field(1, ge=1, le=200)


class Invited(InvitationOut):
    url: str


class NewHook(Body):
    url: str = Field(max_length=500)


class HookOut(Schema):
    id: int
    url: str
    made: int


class MadeHook(HookOut):
    secret: str = Field(description="signs what is sent; told only this once")
