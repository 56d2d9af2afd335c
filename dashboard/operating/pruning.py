"""Which old runs may go, and how much they hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.utils import timezone

from dashboard.runs.models import ENDED, Run
from trainer.folder import run_folder


@dataclass(frozen=True)
class Old:
    run: Run
    bytes: int  # of all its files, as the disk counts them

    @property
    def ended(self) -> datetime:
        return self.run.ended_at or self.run.created_at


def old_runs(home: Path, older_than_days: float | None, archived_only: bool) -> Iterator[Old]:
    """Runs that have ended, so long ago, in the archive where asked; the oldest first, never a pinned one."""
    runs = Run.objects.filter(state__in=ENDED, deleted_at=None, pinned_at=None).defer("picture")
    if older_than_days is not None:
        runs = runs.filter(ended_at__lt=timezone.now() - timedelta(days=older_than_days))
    if archived_only:
        runs = runs.filter(archived_at__isnull=False)
    for run in runs.order_by("ended_at"):
        yield Old(run, disk_bytes(run_folder(home, run.pk)))


def disk_bytes(folder: Path) -> int:
    """Blocks that files take, not their lengths: what removing them would free."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += 512 * os.lstat(os.path.join(place, name)).st_blocks
            except FileNotFoundError:  # an export's draft, which has just got its name
                continue
    return total
