"""What people make of runs that are there: names, notes, tags, pins, the archive, deleting and its undoing."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone

from dashboard.notices import telling
from dashboard.runs import door, kept
from dashboard.runs.models import ENDED, Run, RunTag
from trainer.complaints import FieldError, SpecError
from trainer.folder import run_folder
from trainer.trace import stream

KEPT_DELETED = timedelta(days=7)  # for as long a deleted run can come back
MOST_TAGS = 20
LONGEST_NOTE = 4000
_TAG = re.compile(r"[^\s,\"<>=:]{1,40}\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class StillRuns(Exception):
    """A run that has not ended cannot be deleted."""


def change(run: Run, given: dict[str, Any]) -> None:
    """Set what `given` has of name, note, tags, pinned and archived. All of it, or a SpecError and nothing."""
    errors = [error for key, value in given.items() for error in _complaints(key, value)]
    if errors:
        raise SpecError(errors)
    now = timezone.now()
    fields: dict[str, Any] = {key: given[key].strip() for key in ("name", "note") if key in given}
    fields |= {f"{key}_at": now if given[key] else None for key in ("pinned", "archived") if key in given}
    with transaction.atomic():
        if fields:
            Run.objects.filter(pk=run.pk).update(**fields)
        if "tags" in given:
            run.tags.all().delete()
            tag([run], given["tags"])
    door.tell(run.pk)


def _complaints(key: str, value: Any) -> list[FieldError]:
    if key == "name" and (not value.strip() or len(value) > 120 or _CONTROL.search(value)):
        return [FieldError(key, value, "a line of 1 to 120 characters would do")]
    if key == "note" and (len(value) > LONGEST_NOTE or "\0" in value):
        return [FieldError(key, value[:80], f"at most {LONGEST_NOTE} characters would do")]
    if key == "tags" and len(set(value)) > MOST_TAGS:
        return [FieldError(key, len(value), f"at most {MOST_TAGS} tags would do")]
    if key == "tags":
        return [FieldError(key, one, "a word of up to 40 characters would do, without , : < > = and quotes")
                for one in value if not _TAG.match(one)]
    return []


def words_to_tags(text: str) -> list[str]:
    """As people type them: with commas or spaces between."""
    return [word for word in re.split(r"[,\s]+", text) if word]


def tag(runs: Iterable[Run], names: Iterable[str]) -> None:
    """Add tags that are valid; those a run has already stay."""
    made = [RunTag(run=run, name=name.lower()) for run in runs for name in dict.fromkeys(names)]
    RunTag.objects.bulk_create(made, ignore_conflicts=True)


def checked_tags(names: list[str]) -> list[str]:
    if errors := _complaints("tags", names):
        raise SpecError(errors)
    return names


def archive(runs: Iterable[Run], is_archived: bool) -> None:
    Run.objects.filter(pk__in=[run.pk for run in runs]).update(archived_at=timezone.now() if is_archived else None)


def delete(run: Run) -> None:
    """Nobody sees the run from now on. `restore` brings it back; after KEPT_DELETED it is gone with all it recorded."""
    gone = Run.objects.filter(pk=run.pk, state__in=ENDED, deleted_at=None).update(deleted_at=timezone.now())
    if not gone:
        raise StillRuns("It has not ended: stop it first, then delete it.")
    door.tell(run.pk)  # whoever looks at it is shown out


def restore(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(deleted_at=None)


def purge(home: Path, client: Any) -> list[str]:
    """Remove what was deleted long enough ago. `client` is Redis; RedisError while it is away, and then the rest stays due."""
    due = list(Run.objects.filter(deleted_at__lt=timezone.now() - KEPT_DELETED).values_list("pk", flat=True))
    for run_id in due:
        remove(run_id, home, client)
    return due


def remove(run_id: str, home: Path, client: Any) -> None:
    """All of a deleted run, its row last, so that nothing is left behind that no row names. kept.StorageAway."""
    stream.forget(client, run_id)
    kept.remove(run_id)
    folder = run_folder(home, run_id)
    if folder.exists():
        shutil.rmtree(folder)
    with transaction.atomic():
        telling.forget(run_id)
        Run.objects.filter(pk=run_id, deleted_at__isnull=False).delete()
