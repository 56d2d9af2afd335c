"""Exports on disk: `exports/` in the run's folder holds each file and, beside it, how far its making is.

The folder goes when the run goes. A state that was not written for a while belongs to a process that is gone.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from trainer.folder import run_folder

SILENT_SECONDS = 60.0  # a process that makes an export writes its progress every second
WAITING, MAKING, READY, FAILED, NONE = "waiting", "making", "ready", "failed", "none"


@dataclass(frozen=True)
class State:
    state: str = NONE
    share: float = 0.0  # of the run's spans that are written
    bytes: int = 0
    version: str = ""  # of the store from which it was made, see Source.version
    reason: str = ""  # why it failed

    @property
    def moves(self) -> bool:
        return self.state in (WAITING, MAKING)


class Place:
    """Where one export of one run lies. `key` is one of FORMATS, so no path comes from outside."""

    def __init__(self, home: Path, run_id: str, key: str, suffix: str):
        self.folder = run_folder(home, run_id) / "exports"
        self.file = self.folder / f"{run_id}{suffix}"
        self._note = self.folder / f"{key}.state.json"

    def state(self) -> State:
        try:
            found, at = State(**json.loads(self._note.read_text())), self._note.stat().st_mtime
        except (FileNotFoundError, ValueError, TypeError):
            return State()
        if found.state == READY and not self.file.exists():
            return State()
        if found.state == MAKING and time.time() - at > SILENT_SECONDS:
            return State(FAILED, found.share, reason="The process that made it has fallen silent; make it again.")
        return found

    def note(self, state: State) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self._note.with_name(f".{secrets.token_hex(6)}.part")
        draft.write_text(json.dumps(asdict(state)))
        os.replace(draft, self._note)

    @contextmanager
    def writing(self) -> Iterator[BinaryIO]:
        """A file that takes its place once it is whole."""
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.file.with_name(f".{secrets.token_hex(6)}.part")
        try:
            with draft.open("wb") as file:
                yield file
            os.replace(draft, self.file)
        finally:
            with suppress(FileNotFoundError):
                draft.unlink()
