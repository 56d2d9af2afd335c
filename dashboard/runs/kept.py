"""Sealed runs in the storage that is set (`dashboard.storage`): what a run's store holds, a file a file.

The recorder seals into the home folder, where appending and fsync mean something; once a run is over its store changes
no more and is copied. From then on the folder at home is a copy that may go, and that whoever reads the run fetches
again. The manifest goes last and comes last: where there is one, all that it names is there.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.core.files.base import ContentFile, File
from django.core.files.storage import Storage, storages

from dashboard.storage import KEPT
from trainer.folder import run_folder, store_folder
from trainer.trace.manifest import NAME as MANIFEST

log = logging.getLogger(__name__)

ASK_SECONDS = 2.0  # a run that is not there, as one that has just begun, is asked for at most this often
MOST_ASKED = 1000  # runs of which that is remembered
_COPY_BYTES = 1 << 20

_asked: dict[str, float] = {}


class StorageAway(OSError):
    """The storage does not answer, or refuses; the message says what it said."""


def is_set() -> bool:
    return KEPT in settings.STORAGES


def folder_of(home: Path, run_id: str) -> Path:
    """Where the run's store lies on this machine: fetched from the storage if it is there alone. StorageAway."""
    folder = store_folder(run_folder(home, run_id))
    if is_set() and not folder.exists() and _may_ask(run_id):  # of a run that goes on, it exists before there is a manifest
        fetch(run_id, folder)
    return folder


def keep(run_id: str) -> None:
    """Copy the run's store, which changes no more, to the storage. StorageAway; doing it again does no harm."""
    folder = store_folder(run_folder(settings.CONF.home, run_id))
    names = sorted(path.name for path in folder.iterdir() if path.is_file() and path.suffix != ".part")
    with _storage(f"run {run_id} cannot be put into the storage") as storage:
        for name in [*(name for name in names if name != MANIFEST), MANIFEST]:
            with (folder / name).open("rb") as file:
                storage.save(_name(run_id, name), File(file))


def fetch(run_id: str, folder: Path) -> bool:
    """Copy the run's store from the storage into `folder`, whole or not at all; whether there was one. StorageAway."""
    with _storage(f"run {run_id} cannot be read from the storage") as storage:
        if not storage.exists(_name(run_id, MANIFEST)):
            return False
        draft = _beside(folder)
        draft.mkdir(parents=True)
        try:
            for name in _files(storage, run_id):
                with storage.open(_name(run_id, name)) as source, (draft / name).open("wb") as target:
                    shutil.copyfileobj(source, target, _COPY_BYTES)
            os.rename(draft, folder)
        except OSError:
            if not (folder / MANIFEST).exists():  # else another process was quicker
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    log.info("run %s was fetched from the storage", run_id)
    return True


def remove(run_id: str) -> None:
    """All that the storage holds of the run, the manifest first. StorageAway."""
    if not is_set():
        return
    with _storage(f"run {run_id} cannot be removed from the storage") as storage:
        storage.delete(_name(run_id, MANIFEST))
        for name in _files(storage, run_id):
            storage.delete(_name(run_id, name))
        for folder in (_name(run_id), run_id):  # of a file system; a bucket has none
            storage.delete(folder)


def probe() -> None:
    """Put a file into the storage, read it and remove it. StorageAway when any of it fails."""
    name, content = f".probe-{secrets.token_hex(6)}", secrets.token_bytes(16)
    with _storage("the storage cannot be used") as storage:
        storage.save(name, ContentFile(content))
        try:
            with storage.open(name) as file:
                if file.read() != content:
                    raise OSError("it gives back something else than was put there")
        finally:
            storage.delete(name)


def drop_copy(run_id: str) -> None:
    """Remove the store from the home folder, which the storage holds."""
    folder = store_folder(run_folder(settings.CONF.home, run_id))
    gone = _beside(folder)
    os.rename(folder, gone)  # at once: a reader finds a whole store or none
    shutil.rmtree(gone)


def copy_at_home(run_id: str) -> tuple[float, int]:
    """When the run's store came to the home folder, sealed there or fetched, in unix seconds, and its bytes; or zeros."""
    folder = store_folder(run_folder(settings.CONF.home, run_id))
    try:
        return folder.stat().st_mtime, sum(path.stat().st_size for path in folder.iterdir())
    except FileNotFoundError:
        return 0.0, 0


@contextmanager
def _storage(trouble: str) -> Iterator[Storage]:
    """The storage; whatever goes wrong in the block is a StorageAway, since every bucket's library has errors of its own."""
    try:
        yield storages[KEPT]
    except Exception as error:
        raise StorageAway(f"{trouble}: {error}") from error


def _beside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}-{secrets.token_hex(6)}")


def _name(run_id: str, *file: str) -> str:
    return "/".join((run_id, "store", *file))


def _files(storage: Storage, run_id: str) -> list[str]:
    try:
        return list(storage.listdir(_name(run_id))[1])
    except FileNotFoundError:  # of a file system; a bucket has an empty list
        return []


def _may_ask(run_id: str) -> bool:
    now = time.monotonic()
    if now - _asked.get(run_id, -ASK_SECONDS) < ASK_SECONDS:
        return False
    if len(_asked) >= MOST_ASKED:
        _asked.clear()
    _asked[run_id] = now
    return True
