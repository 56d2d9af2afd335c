"""One run inside the host of ranks: its processes, from fork to the last exit."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from trainer.ends import FINISHED, STOPPED, TIMED_OUT, Exit, cause_of
from trainer.host_child import become_rank
from trainer.job import Control, RankJob
from trainer.lives import FIRST_LIFE, Life, forget_after, newest_checkpoint
from trainer.spec import JobSpec

# For the other ranks after one has died: to fail by themselves, then to heed SIGTERM.
GRACE_SECONDS = 2.0
# If all are to begin again anyway.
SHORT_GRACE_SECONDS = 0.3
# After one has waited in vain. Those that wait as well give up at about the same time; who then is left did not come.
ABSENT_AFTER_SECONDS = 1.0

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
    """The ranks of one run. `send` tells its supervisor, one JSON object a line.

    When a rank fails the others are ended. If the job allows for it all then begin again, a new life of the run.
    """

    def __init__(self, request: Request, send: Send, entry: str):
        self.request = request
        self._send = send
        self._entry = entry
        self._spec = JobSpec.model_validate_json(request.spec_json)
        self._ranks = self._spec.ranks
        self._control = Control(self._ranks)
        self._told_steps: list[int] = []
        self._life = FIRST_LIFE
        self._may_begin_again = True
        self._begin_life()

    def _begin_life(self) -> None:
        self._alive: dict[int, int] = {}  # pid -> rank
        self._group = 0
        self._exits: list[Exit] = []
        self._ended_by_host: set[int] = set()  # ranks that got a signal from here
        self._next_rung: tuple[float, signal.Signals] | None = None  # when to send which signal to what is left

    @property
    def is_over(self) -> bool:
        return not self._alive

    def start(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0), backlog=max(128, self._ranks))
        host_pid = os.getpid()
        try:
            for rank in range(self._ranks):
                frames, spans = self._control.written(rank)
                job = RankJob(
                    run=self.request.run, rank=rank, spec_json=self.request.spec_json, folder=self.request.folder,
                    rendezvous_port=listener.getsockname()[1], rendezvous_fd=listener.fileno() if rank == 0 else -1,
                    redis_url=self.request.redis_url, flush_ms=self.request.flush_ms,
                    life=replace(self._life, frames=frames, spans=spans),
                )
                pid = os.fork()
                if pid == 0:
                    become_rank(job, self._control, host_pid, self._group, self._entry)
                self._group = self._group or pid
                _join_group(pid, self._group)
                self._alive[pid] = rank
        except OSError:
            self.end(signal.SIGKILL)
            raise
        finally:
            listener.close()
        self._send({"type": "started", "pids": list(self._alive)})

    def ask(self) -> None:
        self._may_begin_again = False
        self._control.request_stop()

    def end(self, number: signal.Signals) -> None:
        """Signal every process of the run, and what it started; it does not begin again."""
        self._may_begin_again = False
        self._signal(number)

    def _signal(self, number: signal.Signals) -> None:
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
        if self._exits and self.is_over:
            self.tell_steps()
            cause = cause_of(self._exits)
            if cause is not None and self._has_lives:
                self._begin_again(cause.words)
            else:
                self._exits = []
                self._send({"type": "done"})

    def _note_end(self, rank: int, status: int) -> None:
        died_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        end = Exit(rank, code, died_by, self._control.steps()[rank], rank in self._ended_by_host)
        self._exits.append(end)
        self._send({"type": "exit", **asdict(end)})
        if code not in (FINISHED, STOPPED) and self._next_rung is None:
            grace_seconds = SHORT_GRACE_SECONDS if self._has_lives else GRACE_SECONDS
            self._next_rung = (
                time.monotonic() + (ABSENT_AFTER_SECONDS if code == TIMED_OUT else grace_seconds), signal.SIGTERM)

    @property
    def _has_lives(self) -> bool:
        return self._may_begin_again and self._life.number < self._spec.restarts

    def _begin_again(self, cause: str) -> None:
        first_step = newest_checkpoint(self._spec, self.request.folder)
        forget_after(self.request.folder, first_step)
        reached = max(self._life.reached_step, *self._control.steps())
        self._life = Life(self._life.number + 1, first_step, reached, self._control.zero_ns, cause=cause)
        for rank in range(self._ranks):
            self._control.begin_step(rank, first_step - 1)
        self._send({"type": "restarted", "life": self._life.number, "words": self._life.words})
        self._begin_life()
        self.start()

    @property
    def due(self) -> float | None:
        """When `climb` is due, in time.monotonic()."""
        return self._next_rung[0] if self._next_rung and self._alive else None

    def climb(self) -> None:
        """End what is left of a run that has lost a rank: it cannot go on."""
        if self.due is None or self._next_rung is None or time.monotonic() < self._next_rung[0]:
            return
        self._signal(self._next_rung[1])
        self._next_rung = (time.monotonic() + GRACE_SECONDS, signal.SIGKILL)


def _join_group(pid: int, group: int) -> None:
    """Also the child does so itself: whoever comes first, no signal to the group misses it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has done so and is gone
        os.setpgid(pid, group)
