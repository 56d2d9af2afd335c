"""The first moments of a rank: what a fork of the host does before it is a rank, and how it ends."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import os
import signal
import sys
import traceback
from typing import NoReturn

from trainer.folder import log_file
from trainer.job import Control, RankJob
from trainer.lifeline import die_with_parent


def become_rank(job: RankJob, control: Control, host_pid: int, group: int, entry: str) -> NoReturn:
    """Run `entry` ("module:function") as this rank. The process ends here and never returns into the host's loop."""
    code = 1
    try:
        die_with_parent(host_pid)
        os.setpgid(0, group)
        _reset_signals()
        _redirect_streams(job)
        _close_all_but(job.rendezvous_fd)
        faulthandler.enable()
        code = _call(entry, job, control)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)  # the host's exit handlers are not the rank's


def _call(entry: str, job: RankJob, control: Control) -> int:
    module, function = entry.split(":")
    try:
        # Imported here again: an error that the host met while loading shows in the rank's log.
        return int(getattr(importlib.import_module(module), function)(job, control))
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else int(leave.code is not None)


def _reset_signals() -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _redirect_streams(job: RankJob) -> None:
    path = log_file(job.folder, job.rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]


def _close_all_but(kept: int) -> None:
    """Nothing of the host's stays open in a rank: a held socket would hide that its other end is gone.

    The host's objects for them live on in the frames below this one, so none closes a number again
    that has meanwhile become another's.
    """
    for name in os.listdir("/proc/self/fd"):
        number = int(name)
        if number > 2 and number != kept:
            with contextlib.suppress(OSError):  # one was the listing's own
                os.close(number)
