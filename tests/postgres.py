"""A real Postgres for tests: a cluster of its own in a folder, on a port of its own, gone with the test."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.valkey import free_port

PATIENCE_SECONDS = 60


def programs() -> Path | None:
    """The folder with initdb and postgres: on PATH, or where Debian puts them."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    return max((path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")), default=None)


def refusal() -> str:
    """Why no server can be started here; empty when one can."""
    if programs() is None:
        return "no Postgres server is installed (apt-get install postgresql would do)"
    if os.getuid() == 0 and _user() is None:
        return "Postgres does not run as root, and there is no user “postgres”"
    return ""


def _user() -> str | None:
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return None


@contextmanager
def running_postgres(folder: Path) -> Iterator[str]:
    """The address of a server whose only user is `postgres`; `folder` must be such that this user can reach it."""
    where, port = programs(), free_port()
    assert where is not None
    user = _user() if os.getuid() == 0 else None
    data = folder / "data"
    if user:
        shutil.chown(folder, user)
    subprocess.run([str(where / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"],
                   check=True, capture_output=True, user=user, cwd=folder)
    quick = ["-c", "fsync=off", "-c", "full_page_writes=off", "-c", f"unix_socket_directories={folder}"]
    with (folder / "postgres.log").open("wb") as log:
        server = subprocess.Popen([str(where / "postgres"), "-D", str(data), "-p", str(port), "-h", "127.0.0.1", *quick],
                                  stdout=log, stderr=log, user=user, cwd=folder)
    url = f"postgres://postgres@127.0.0.1:{port}/postgres"
    try:
        _await(url, server)
        yield url
    finally:
        server.terminate()
        server.wait(30)


def _await(url: str, server: subprocess.Popen[bytes]) -> None:
    give_up = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            assert server.poll() is None and time.monotonic() < give_up, "Postgres does not come up"
            time.sleep(0.1)
