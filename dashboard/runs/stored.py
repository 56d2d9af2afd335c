"""Runs' stores for whoever asks in this process: read once, and read on when there is more."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from threading import Lock

from django.conf import settings

from dashboard.runs import kept
from trainer.trace.manifest import NAME as MANIFEST
from trainer.trace.store import StoreReader

KEPT_RUNS = 64

_Stamp = tuple[int, int]  # of a file: when it was written, and which it is


def store_of(run_id: str) -> StoreReader:
    """The run's store as its manifest says now. The reader is shared among threads and never changes. kept.StorageAway."""
    return _known(kept.folder_of(settings.CONF.home, run_id)).now()


class _Known:
    def __init__(self, folder: Path):
        self._folder = folder
        self._read: tuple[_Stamp | None, StoreReader] | None = None
        self._lock = Lock()

    def now(self) -> StoreReader:
        with self._lock:
            stamp = self._stamp()  # first, so that a manifest written meanwhile is read again the next time
            if self._read is None or stamp is None:
                self._read = stamp, StoreReader(self._folder)
            elif self._read[0] != stamp:
                self._read = stamp, StoreReader(self._folder, self._read[1])
            return self._read[1]

    def _stamp(self) -> _Stamp | None:
        try:
            status = (self._folder / MANIFEST).stat()
        except FileNotFoundError:
            return None
        return status.st_mtime_ns, status.st_ino


@lru_cache(maxsize=KEPT_RUNS)
def _known(folder: Path) -> _Known:
    return _Known(folder)
