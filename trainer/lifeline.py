"""Processes that die with their parent, however it dies.

`python -m trainer.lifeline PARENT_PID COMMAND…` becomes COMMAND, killed by the kernel as soon as the
thread that started it is gone. So start it from a thread that lives as long as the process: the main one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
# Loaded here: between fork and exec nothing should be looked up.
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent_pid: int) -> None:
    """Ask the kernel to kill this process when its parent dies; end at once if it is dead already."""
    if _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent_pid:  # it died before the kernel had been asked
        os._exit(1)


def tied_command(command: list[str]) -> list[str]:
    """`command`, to be started by this process and to die with it."""
    return [sys.executable, "-m", "trainer.lifeline", str(os.getpid()), *command]


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]))
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the parent may block what it waits for
    os.execvp(sys.argv[2], sys.argv[2:])
