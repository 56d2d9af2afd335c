"""Makes exports: small ones at once, large ones by a process of their own, which says how far it is."""

from __future__ import annotations

import logging
import time

from django.conf import settings

from dashboard.runs import door, state
from dashboard.runs.exports.files import FAILED, MAKING, READY, WAITING, Place, State
from dashboard.runs.exports.formats import FORMATS
from dashboard.runs.exports.source import Source
from dashboard.runs.models import Run

log = logging.getLogger(__name__)

SMALL_SPANS = 50_000  # up to here a request makes it: half a second at the most
_NOTE_EVERY_SECONDS = 1.0


class NobodyMakesIt(Exception):
    """Redis does not answer, so a large export cannot be asked for."""


def place(run: Run, key: str) -> Place:
    return Place(settings.CONF.home, run.pk, key, FORMATS[key].suffix)


def ask(run: Run, key: str) -> State:
    """See to it that the export is there or comes; as it is now. One that is of all that is sealed is kept."""
    source, at = _source(run), place(run, key)
    now = at.state()
    if now.moves or (now.state == READY and now.version == source.version):
        return now
    if source.spans <= SMALL_SPANS:
        make(run, key)
    else:
        at.note(State(WAITING))
        if not door.ask_for_export(run.pk, key):
            at.note(State())
            raise NobodyMakesIt("Redis does not answer, so nobody can be asked to make it. Try again in a while.")
    return at.state()


def make(run: Run, key: str) -> None:
    """Write the file, whatever is there already; if that fails its state says why."""
    source, at = _source(run), place(run, key)
    noted_at = 0.0

    def progress(done: int, of: int) -> None:
        nonlocal noted_at
        if time.monotonic() - noted_at >= _NOTE_EVERY_SECONDS:
            noted_at = time.monotonic()
            at.note(State(MAKING, done / of if of else 1.0))

    progress(0, source.spans)
    try:
        with at.writing() as file:
            FORMATS[key].write(source, file, progress)
    except Exception as error:  # most likely the disk is full, or the store is broken
        log.exception("run %s could not be exported as %s", run.pk, key)
        at.note(State(FAILED, reason=f"It could not be written: {error}"))
        return
    at.note(State(READY, 1.0, at.file.stat().st_size, source.version))


def states(run: Run) -> dict[str, State]:
    return {key: place(run, key).state() for key in FORMATS}


def _source(run: Run) -> Source:
    return Source.of(run, state.for_page(run), settings.CONF.home)
