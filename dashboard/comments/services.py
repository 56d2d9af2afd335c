"""Writing, editing and deleting comments, and what changed since a page looked."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import F, Q
from django.http import Http404
from django.utils import timezone

from dashboard import markdown
from dashboard.comments.models import Comment
from dashboard.comments.spot import FIELDS, checked
from dashboard.notices import telling
from dashboard.runs import door
from dashboard.runs.models import Run
from dashboard.runs.state import unix_ms
from trainer.complaints import FieldError, SpecError

LONGEST = 4000  # characters
MOST = 2000  # in a run
A_PAGE = 200


def write(run: Run, author: Any, text: str, about: dict[str, Any] | None = None, parent_id: int | None = None) -> Comment:
    """A new thread about a spot, or an answer in one. SpecError when it cannot be as given, Http404 for no such thread."""
    text = _checked_text(text)
    if run.comments.count() >= MOST:
        raise SpecError([FieldError("text", run.pk, f"{MOST} comments are as many as a run may have")])
    parent = _thread(run, parent_id) if parent_id is not None else None
    spot = {} if parent else checked(run, about or {"kind": "run"})
    with transaction.atomic():
        made = Comment.objects.create(
            run=run, author=author, parent=parent, text=text, revision=_next_revision(run), **spot
        )
        names = _mentioned(run, text)
        telling.mentioned(run, author, names, text)
        if parent:
            telling.answered(run, author, _in_thread(parent) - names, text)
    door.tell(run.pk)
    return made


def edit(comment: Comment, text: str) -> None:
    """Whom it mentions anew hears of it."""
    text = _checked_text(text)
    fresh = _mentioned(comment.run, text) - _mentioned(comment.run, comment.text)
    with transaction.atomic():
        _change(comment, text=text, edited_at=timezone.now())
        telling.mentioned(comment.run, comment.author, fresh, text)
    door.tell(comment.run_id)


def delete(comment: Comment) -> None:
    """Its words are gone; its place in the thread stays."""
    with transaction.atomic():
        _change(comment, text="", deleted_at=timezone.now())
    door.tell(comment.run_id)


def own(run: Run, author: Any, comment_id: int) -> Comment:
    """That comment of `author`; Http404 when it is somebody else's, as when there is none."""
    found = Comment.objects.filter(run=run, author=author, pk=comment_id, deleted_at=None).select_related("run", "author").first()
    if found is None:
        raise Http404("There is no such comment of yours.")
    return found


def changes(run: Run, after: int, reader: Any) -> dict[str, Any]:
    """What was written, edited or deleted after revision `after`, up to a page of it, for `reader` to see."""
    found = list(run.comments.filter(revision__gt=after).select_related("author")[: A_PAGE + 1])
    shown, names = found[:A_PAGE], people_of(run)
    return {
        "comments": [as_dict(one, names, reader) for one in shown],
        "through": shown[-1].revision if shown else after,
        "more": len(found) > A_PAGE,
    }


def as_dict(comment: Comment, names: Collection[str], reader: Any) -> dict[str, Any]:
    """Times in milliseconds since 1970, but those of the spot, which are ns on the run's clock."""
    fields = FIELDS[comment.about]  # type: ignore[index]  # a key of them, by the model's choices
    return {
        "id": comment.pk,
        "parent": comment.parent_id,
        "author": comment.author.get_username() if comment.author else None,
        "is_own": comment.author_id is not None and comment.author_id == reader.pk,
        "text": comment.text,
        "html": markdown.html(comment.text, names),
        "about": {"kind": comment.about} | {name: getattr(comment, name) for name in fields},
        "made": unix_ms(comment.made_at),
        "edited": unix_ms(comment.edited_at),
        "is_deleted": comment.deleted_at is not None,
    }


def people_of(run: Run) -> list[str]:
    """Names of those who may see the run by their account, administrators aside."""
    who = Q(pk=run.owner_id) | Q(memberships__team=run.team_id) if run.team_id else Q(pk=run.owner_id)
    return sorted(get_user_model().objects.filter(who, is_active=True).values_list("username", flat=True).distinct())


def _mentioned(run: Run, text: str) -> set[str]:
    return markdown.names_in(text) & set(people_of(run))


def _in_thread(parent: Comment) -> set[str]:
    thread = Comment.objects.filter(Q(pk=parent.pk) | Q(parent=parent), deleted_at=None, author__isnull=False)
    return set(thread.values_list("author__username", flat=True)) & set(people_of(parent.run))


def _thread(run: Run, comment_id: int) -> Comment:
    found = run.comments.filter(pk=comment_id, parent=None).first()
    if found is None:
        raise Http404("There is no such thread.")
    return found


def _change(comment: Comment, **fields: Any) -> None:
    Comment.objects.filter(pk=comment.pk).update(revision=_next_revision(comment.run), **fields)


def _next_revision(run: Run) -> int:
    """Inside the transaction of the change: the run's row is locked from here on, so revisions appear in their order."""
    Run.objects.filter(pk=run.pk).update(comments_revision=F("comments_revision") + 1)
    return Run.objects.values_list("comments_revision", flat=True).get(pk=run.pk)


def _checked_text(text: str) -> str:
    text = text.replace("\r\n", "\n").strip()
    if not text or len(text) > LONGEST or "\0" in text:
        raise SpecError([FieldError("text", text[:80], f"1 to {LONGEST} characters would do")])
    return text
