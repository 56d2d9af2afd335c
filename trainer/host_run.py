"""One run inside the host of ranks: its processes, from fork to the last exit."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.host_child import become_rank
from trainer.job import Control, RankJob
from trainer.spec import JobSpec

STOPPED_ON_REQUEST = 10  # exit status of a rank that ended early because it was asked to
GRACE_SECONDS = 2.0  # for the other ranks after one has died: to fail by themselves, then to heed SIGTERM

Send = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Request:
    """What a supervisor asks for; the first line of its connection."""

    run: str
    spec_json: str
    folder: Path
    redis_url: str
    flush_ms: float

    @classmethod
    def from_line(cls, line: dict[str, Any]) -> Request:
        return cls(
            str(line["run"]), str(line["spec_json"]), Path(line["folder"]), str(line["redis_url"]), float(line["flush_ms"])
        )


class HostedRun:
    """The ranks of one run. `send` tells its supervisor, one JSON object a line."""

    def __init__(self, request: Request, send: Send, entry: str):
        self.request = request
        self._send = send
        self._entry = entry
        self._ranks = JobSpec.model_validate_json(request.spec_json).ranks
        self._control = Control(self._ranks)
        self._alive: dict[int, int] = {}  # pid -> rank
        self._group = 0
        self._ended_by_host: set[int] = set()  # ranks that got a signal from here
        self._told_steps: list[int] = []
        self._next_rung: tuple[float, signal.Signals] | None = None  # when to send which signal to what is left

    @property
    def is_over(self) -> bool:
        return not self._alive

    def start(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0), backlog=max(128, self._ranks))
        host_pid = os.getpid()
        try:
            for rank in range(self._ranks):
                job = RankJob(
                    run=self.request.run, rank=rank, spec_json=self.request.spec_json, folder=self.request.folder,
                    rendezvous_port=listener.getsockname()[1], rendezvous_fd=listener.fileno() if rank == 0 else -1,
                    redis_url=self.request.redis_url, flush_ms=self.request.flush_ms,
                )
                pid = os.fork()
                if pid == 0:
                    become_rank(job, self._control, host_pid, self._group, self._entry)
                self._group = self._group or pid
                _join_group(pid, self._group)
                self._alive[pid] = rank
        except OSError:
            self.signal(signal.SIGKILL)
            raise
        finally:
            listener.close()
        self._send({"type": "started", "pids": list(self._alive)})

    def ask(self) -> None:
        self._control.request_stop()

    def signal(self, number: signal.Signals) -> None:
        """To every process of the run, and what it started."""
        if self._alive:  # while one is not reaped the group's number cannot be another's
            self._ended_by_host.update(self._alive.values())
            os.killpg(self._group, number)

    def tell_steps(self) -> None:
        steps = self._control.steps()
        if steps != self._told_steps:
            self._told_steps = steps
            self._send({"type": "steps", "steps": steps})

    def reap(self) -> None:
        """Note which ranks have ended. Call it after SIGCHLD."""
        for pid in list(self._alive):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                continue
            if len(self._alive) == 1:
                os.killpg(self._group, signal.SIGKILL)  # what a rank started and left behind; itself it is dead
            self._note_end(self._alive[pid], os.waitpid(pid, 0)[1])
            del self._alive[pid]
            if self.is_over:
                self.tell_steps()
                self._send({"type": "done"})

    def _note_end(self, rank: int, status: int) -> None:
        died_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        self._send({
            "type": "exit", "rank": rank, "code": code, "signal": died_by, "step": self._control.steps()[rank],
            "by_host": rank in self._ended_by_host,
        })
        if code not in (0, STOPPED_ON_REQUEST) and self._next_rung is None:
            self._next_rung = (time.monotonic() + GRACE_SECONDS, signal.SIGTERM)

    @property
    def due(self) -> float | None:
        """When `climb` is due, in time.monotonic()."""
        return self._next_rung[0] if self._next_rung and self._alive else None

    def climb(self) -> None:
        """End what is left of a run that has lost a rank: it cannot go on."""
        if self.due is None or self._next_rung is None or time.monotonic() < self._next_rung[0]:
            return
        self.signal(self._next_rung[1])
        self._next_rung = (time.monotonic() + GRACE_SECONDS, signal.SIGKILL)


def _join_group(pid: int, group: int) -> None:
    """Also the child does so itself: whoever comes first, no signal to the group misses it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has done so and is gone
        os.setpgid(pid, group)
