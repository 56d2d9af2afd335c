"""A real stack in a folder of its own, as `manage.py up` starts it, for tests of the whole.

    with running_stack() as stack:
        stack.create_user("ada", "a long password")
        run = stack.launch("pipeline-1f1b", "steps=3")
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import redis

from tests.stack.console import Console
from tests.stack.home import ROOT, clean_environment, give_database
from trainer.lifeline import tied_command

T = TypeVar("T")


def at_once_seconds() -> float:
    """Within what "at once" is held: a second, and more where more wants to run than there are cores to run it."""
    return 1.0 if os.getloadavg()[0] <= (os.cpu_count() or 1) else 8.0


def wait_for(ask: Callable[[], T], seconds: float, what: str) -> T:
    """What `ask` gives as soon as it is true."""
    give_up = time.monotonic() + seconds
    while time.monotonic() < give_up:
        if answer := ask():
            return answer
        time.sleep(0.05)
    raise AssertionError(f"waited {seconds} s in vain for {what}")


@dataclass
class Stack:
    home: Path
    environment: dict[str, str]
    process: subprocess.Popen[str]
    output: Path
    console: Console
    url: str = ""

    @property
    def redis_url(self) -> str:
        return (self.home / "redis-url").read_text().strip()

    @property
    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.redis_url, socket_timeout=3)

    def manage(self, *arguments: str, status: int | None = 0, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """`manage.py` in this stack's home; its exit status is checked unless `status` is None."""
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, input=stdin, capture_output=True, text=True, timeout=120)
        assert status is None or done.returncode == status, done.stdout + done.stderr
        return done

    def python(self, code: str) -> Any:
        """What the expression `code` is in a process of this stack's Django; models, services and settings are there."""
        return self.console.python(code)

    def create_user(self, name: str = "ada", password: str = "correct horse battery", is_superuser: bool = True) -> None:
        make = "create_superuser" if is_superuser else "create_user"
        self.python(f"User.{make}({name!r}, '', {password!r}).pk")

    def log_in(self, name: str) -> dict[str, str]:
        """The cookie of a browser in which this person has logged in."""
        key = self.python(f"session_of(User.get(username={name!r}))")
        return {"name": "lockstep_session", "value": key, "url": self.url}

    def make_token(self, name: str, *scopes: str) -> str:
        """A token of this person for programs."""
        token: str = self.python(f"tokens.make(User.get(username={name!r}), 'ci', {list(scopes)})[1]")
        return token

    def launch(self, what: str, *changes: str) -> str:
        """The id of a new run that nobody waits for."""
        settings = [word for change in changes for word in ("--set", change)]
        run_id: str = json.loads(self.console.manage("launch", what, *settings, "--json"))["run"]
        return run_id

    def run(self, run_id: str) -> dict[str, Any]:
        """The run's row; read from the file, since a process of Django a look would take a second."""
        with closing(sqlite3.connect(f"file:{self.home / 'lockstep.sqlite3'}?mode=ro", uri=True, timeout=10)) as database:
            database.row_factory = sqlite3.Row
            row = dict(database.execute("SELECT * FROM runs_run WHERE id = ?", [run_id]).fetchone())
        return row | {name: json.loads(row[name] or "null") for name in ("failure", "figures", "spec_json")}

    def stop_run(self, run_id: str) -> None:
        assert self.python(f"services.stop({run_id!r})")

    def rank_host(self) -> int:
        """The process of the worker's rank host."""
        hosts = [pid for pid in children_of(self.pid_of("worker"), self.home) if "trainer.host" in command_of(pid)]
        assert len(hosts) == 1, self.logs()
        return hosts[0]

    def pool_child(self) -> int:
        """The process of the worker that runs tasks, with one run at a time."""
        worker = self.pid_of("worker")
        children = [pid for pid in children_of(worker, self.home) if "trainer.host" not in command_of(pid)]
        assert len(children) == 1, self.logs()
        return children[0]

    def ranks(self) -> list[int]:
        """The processes of all ranks that this stack runs, in the order of their start."""
        return children_of(self.rank_host(), self.home)

    def wait_for_state(self, run_id: str, *states: str, seconds: float = 60) -> dict[str, Any]:
        last: list[dict[str, Any]] = [{}]

        def ask() -> dict[str, Any] | None:
            last[0] = self.run(run_id)
            return last[0] if last[0]["state"] in states else None

        try:
            return wait_for(ask, seconds, f"run {run_id} to be {' or '.join(states)}")
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {last[0]}\n{self.logs()}") from None

    def logs(self) -> str:
        ends = [f"--- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-25:])
                for path in [self.output, *sorted((self.home / "logs").glob("*.log"))]]
        return "\n".join(ends)

    def processes(self) -> dict[int, str]:
        """Every process that lives in this home folder, with its command line."""
        return processes_of(self.home)

    def pid_of(self, part: str) -> int:
        """The process of a part, as soon as it is there: redis, web, recorder, worker or exporter."""
        marks = {"redis": "-server 127.0.0.1", "web": "dashboard.stack.serve", "recorder": "manage.py record",
                 "worker": "workers.app", "exporter": "dashboard.exporting"}

        def ask() -> list[int]:
            children = [pid for pid, command in self.processes().items() if parent_of(pid) == self.process.pid]
            return [pid for pid in children if marks[part] in command_of(pid)]

        try:
            found = wait_for(ask, 10, f"{part} to be there")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()}") from None
        assert len(found) == 1, f"{part}: {found}\n{self.logs()}"
        return found[0]

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(30)

    def kill(self) -> None:
        """At once, with all that it started: how a stack ends in order has tests of its own."""
        self.process.kill()
        self.process.wait()
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.console.close()


def processes_of(home: Path) -> dict[int, str]:
    """Zombies aside. Valkey writes its title over its environment, but works inside the home folder."""
    mark = f"LOCKSTEP_HOME={home}".encode()
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = mark in (folder / "environ").read_bytes().split(b"\0") or (folder / "cwd").readlink().is_relative_to(home)
            is_alive = state_of(int(folder.name)) not in "ZX"
        except OSError:
            continue
        if is_ours and is_alive:
            found[int(folder.name)] = command_of(int(folder.name))
    return found


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()


def state_of(pid: int) -> str:
    return _stat(pid)[0]


def parent_of(pid: int) -> int:
    try:
        return int(_stat(pid)[1])
    except OSError:
        return 0


def children_of(pid: int, home: Path) -> list[int]:
    return sorted(child for child in processes_of(home) if parent_of(child) == pid)


@contextmanager
def running_stack(*options: str, under: Sequence[str] = (), **environment: str) -> Iterator[Stack]:
    """`manage.py up --port 0`; everything of it is gone when the block ends. Keywords go into its environment.

    `under` is a command that starts it, such as one that takes rights away.
    """
    folder = Path(tempfile.mkdtemp(prefix="lockstep-stack-"))
    give_database(folder)
    clean, output = clean_environment(folder, **environment), folder / "up.out"
    command = tied_command([*under, sys.executable, str(ROOT / "manage.py"), "up", "--port", "0", *options])
    with output.open("a") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, env=clean, stdin=subprocess.DEVNULL, stdout=out, stderr=out, text=True, start_new_session=True
        )
    stack = Stack(folder, clean, process, output, Console(clean))
    try:
        _await_ready(stack, with_worker="--no-worker" not in options)
        yield stack
    finally:
        stack.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _await_ready(stack: Stack, with_worker: bool) -> None:
    def address() -> str | None:
        assert stack.process.poll() is None, stack.logs()
        try:
            return str(json.loads((stack.home / "stack.json").read_text())["url"])
        except (FileNotFoundError, ValueError):
            return None

    stack.url = wait_for(address, 120, f"the stack to come up\n{stack.output.read_text()}")
    if with_worker:
        try:
            wait_for(lambda: "rank slots" in stack.output.read_text(), 120, "its worker")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{stack.logs()}") from None
