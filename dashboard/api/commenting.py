"""What people say of a run, by the API; the page writes by these too."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query, Status

from dashboard.api.auth import may
from dashboard.api.reading import UNREAD
from dashboard.api.router import router
from dashboard.api.schemas import CommentOut, CommentPage, NewComment, NewText
from dashboard.comments import services
from dashboard.runs.access import access

READ, MANAGE = may("read"), may("manage")


@router.get("/runs/{run_id}/comments", response={200: CommentPage, **UNREAD}, auth=READ, tags=["comments"],
            summary="Comments, written or changed after a revision")
def comments(
    request: HttpRequest, run_id: str, after: int = Query(0, ge=0, le=2**31, description="`through` of the last answer"),
) -> dict[str, Any]:
    return services.changes(access(request.user, run_id).run, after, request.user)


@router.post("/runs/{run_id}/comments", response={201: CommentOut, **UNREAD}, auth=MANAGE, tags=["comments"],
             summary="Comment on a run, a range, a span or a rank, or answer a comment")
def comment(request: HttpRequest, run_id: str, given: NewComment) -> Status[dict[str, Any]]:
    run = access(request.user, run_id).run
    about = given.about.dict(exclude_none=True) if given.about else None
    made = services.write(run, request.user, given.text, about, given.parent)
    return Status(201, services.as_dict(made, services.people_of(run), request.user))


@router.patch("/runs/{run_id}/comments/{comment_id}", response={200: CommentOut, **UNREAD}, auth=MANAGE, tags=["comments"],
              summary="Change a comment of yours")
def edit_comment(request: HttpRequest, run_id: str, comment_id: int, given: NewText) -> dict[str, Any]:
    run = access(request.user, run_id).run
    services.edit(services.own(run, request.user, comment_id), given.text)
    return services.as_dict(services.own(run, request.user, comment_id), services.people_of(run), request.user)


@router.delete("/runs/{run_id}/comments/{comment_id}", response={204: None, **UNREAD}, auth=MANAGE, tags=["comments"],
               summary="Delete a comment of yours")
def delete_comment(request: HttpRequest, run_id: str, comment_id: int) -> Status[None]:
    services.delete(services.own(access(request.user, run_id).run, request.user, comment_id))
    return Status(204, None)
