"""A notice in words, for the page, the bell and the browser's own notices."""

from __future__ import annotations

from typing import Any

from dashboard.notices.models import Kind, Notice
from dashboard.runs.state import unix_ms

ENDED = {Kind.FINISHED: "finished", Kind.FAILED: "failed", Kind.STOPPED: "was stopped", Kind.LOST: "was lost"}


def title(notice: Notice) -> str:
    kind = Kind(notice.kind)
    if kind in ENDED:
        return f"{notice.run.name} {ENDED[kind]}"
    who = notice.by.get_username() if notice.by else "Somebody"
    return f"{who} mentioned you in {notice.run.name}" if kind is Kind.MENTIONED else f"{who} answered in {notice.run.name}"


def as_dict(notice: Notice) -> dict[str, Any]:
    return {
        "id": notice.pk, "kind": notice.kind, "title": title(notice), "words": notice.words, "run": notice.run_id,
        "path": f"/runs/{notice.run_id}/" + ("" if notice.kind in ENDED else "?view=comments"),
        "made": unix_ms(notice.made_at), "is_read": notice.read_at is not None,
    }
