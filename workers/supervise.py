"""One run, from its claim to its verdict: start the ranks, watch them, stop them rung by rung, say how it ended."""

from __future__ import annotations

import logging
import os
import signal
import time
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.db import DatabaseError, close_old_connections

from dashboard.logs import about_run
from dashboard.runs import services
from dashboard.runs.models import ACTIVE, Run, State
from trainer.ends import Exit, signal_name
from trainer.folder import log_file, run_folder
from workers.beat import Heart
from workers.ending import close_stream_patiently
from workers.here import Here
from workers.rank_host import HostGone, Link
from workers.verdict import Verdict, judge, steps_done

log = logging.getLogger(__name__)

HOST_PATIENCE_SECONDS = 60.0  # for a rank host that is being started again
LOOK_EVERY_SECONDS = 0.4  # into the database, whether somebody wants a stop
CLOSING_RUNG_SECONDS = 1.5  # each rung of the ladder when the worker itself is to end
REDIS_PATIENCE_SECONDS = 120.0
LOG_TAIL_LINES, LOG_TAIL_BYTES = 40, 16_384
RUNGS = ("stop", "terminate", "kill")


def take(run_id: str, here: Here) -> None:
    """Run it, if it is still to be run. A task that comes twice does nothing the second time."""
    with about_run(run_id):
        _take(run_id, here)


def _take(run_id: str, here: Here) -> None:
    close_old_connections()  # the last run may have ended hours ago
    if not services.claim(run_id, here.name):
        log.info("run %s is not waiting any more", run_id)
        return
    run = Run.objects.get(pk=run_id)
    folder = run_folder(settings.CONF.home, run_id)
    client = redis.Redis.from_url(settings.CONF.redis_url, socket_timeout=2, socket_connect_timeout=2)
    with Heart(client, run_id, here, os.getpid()):
        supervisor = Supervisor(run, here, folder)
        verdict = supervisor.carry_out()
        close_stream_patiently(client, settings.CONF.redis_url, run_id, folder, run.spec.ranks, REDIS_PATIENCE_SECONDS)
        tail = log_tail(log_file(folder, verdict.rank)) if verdict.rank is not None else ""
        _settle(run_id, verdict, failure=verdict.failure(tail), steps_done=supervisor.steps_done)


class Supervisor:
    def __init__(self, run: Run, here: Here, folder: Path):
        self._run = run
        self._here = here
        self._folder = folder
        self._steps: list[int] = []
        self._exits: list[Exit] = []  # of the life under way
        self._restarts = 0
        self._noted_steps = 0
        self._is_over = False
        self._refused = ""
        self._disowned = False  # the run's state says that it ended: others have given it up
        self._stop_reason = ""
        self._rung = -1  # of RUNGS, the last one taken
        self._rung_at = 0.0
        self._look_at = 0.0

    @property
    def steps_done(self) -> int:
        return steps_done(self._steps)

    def carry_out(self) -> Verdict:
        ranks, most = self._run.spec.ranks, settings.CONF.most_ranks
        if ranks > most:
            words = f"It asks for {ranks} ranks; worker {self._here.name} starts at most {most} (LOCKSTEP_MOST_RANKS)."
            return Verdict(State.FAILED, words)
        try:
            with Link(self._here.rank_host, HOST_PATIENCE_SECONDS) as link:
                link.start(self._run.id, self._run.spec.to_json(), self._folder, settings.CONF.redis_url, settings.CONF.flush_ms)
                while not self._is_over:
                    for message in link.hear(patience_seconds=LOOK_EVERY_SECONDS):
                        self._hear(message)
                    self._look(link)
        except HostGone as gone:
            if not self._is_over:
                return self._without_host(gone)
        if self._refused:
            return Verdict(State.FAILED, f"The rank host could not start it: {self._refused}")
        verdict = judge(self._exits, self._stop_reason, self._restarts)
        if verdict.state == State.STOPPED and self._rung > 0:
            how = "killed" if any(end.signal == signal.SIGKILL for end in self._exits) else "terminated"
            return Verdict(State.STOPPED, f"{verdict.reason} Its ranks did not end when asked and were {how}.")
        return verdict

    def _without_host(self, gone: HostGone) -> Verdict:
        if self._stop_reason:
            return Verdict(State.STOPPED, self._stop_reason)
        return Verdict(State.FAILED, f"The rank host of worker {self._here.name} ended, and its ranks with it ({gone}).")

    def _hear(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "steps":
                self._steps = message["steps"]
                if self._run.state == State.STARTING:
                    self._look_at = 0.0  # the page is waiting for it to run
            case "exit":
                self._exits.append(Exit(message["rank"], message["code"], message["signal"], message["step"], message["by_host"]))
                if message["signal"] and not message["by_host"]:
                    log.warning("run %s: rank %s was killed by %s", self._run.id, message["rank"], signal_name(message["signal"]))
            case "restarted":
                self._exits, self._restarts = [], message["life"]
                log.warning("run %s: %s", self._run.id, message["words"])
            case "refused":
                self._refused, self._is_over = message["reason"], True
            case "done":
                self._is_over = True

    def _look(self, link: Link) -> None:
        """A few times a second: say how far it is, and see whether it is to stop."""
        now = time.monotonic()
        if now < self._look_at or self._is_over:
            return
        self._look_at = now + LOOK_EVERY_SECONDS
        try:
            close_old_connections()
            self._note_steps()
            self._heed_state()
        except DatabaseError as error:  # the ranks go on; the next look tries again
            log.warning("run %s: the database did not answer: %s", self._run.id, error)
        if self._here.is_closing and not self._stop_reason:
            self._stop_reason = f"Its worker {self._here.name} was shut down."
        if self._stop_reason or self._disowned:
            self._climb(link, now)

    def _note_steps(self) -> None:
        if self._steps and max(self._steps) >= 0 and self._run.state == State.STARTING:
            services.move(self._run.id, State.RUNNING)
            self._run.state = State.RUNNING
        done = steps_done(self._steps)
        if done != self._noted_steps:
            services.note(self._run.id, steps_done=done)
            self._noted_steps = done

    def _heed_state(self) -> None:
        state = Run.objects.filter(pk=self._run.id).values_list("state", flat=True).first()
        if state == State.STOPPING and not self._stop_reason:
            self._stop_reason = "Stopped on request."
        elif state not in ACTIVE and not self._disowned:  # lost to the reaper, or deleted
            log.warning("run %s is %s: its ranks are killed", self._run.id, state)
            self._disowned, self._rung, self._rung_at = True, RUNGS.index("terminate"), 0.0

    def _climb(self, link: Link, now: float) -> None:
        """The ladder of stops: ask, terminate, kill; each rung waits before the next."""
        wait_seconds = CLOSING_RUNG_SECONDS if self._here.is_closing else settings.CONF.stop_seconds
        if self._rung < 0 or (now - self._rung_at >= wait_seconds and self._rung + 1 < len(RUNGS)):
            self._rung, self._rung_at = self._rung + 1, now
            log.info("run %s: %s", self._run.id, RUNGS[self._rung])
            link.tell(RUNGS[self._rung])


def _settle(run_id: str, verdict: Verdict, **fields: Any) -> None:
    """Write the verdict down, however long the database needs."""
    for pause_seconds in (0.5, 1, 2, 4, 8, 16, 32):
        try:
            close_old_connections()
            if verdict.state == State.FINISHED:
                services.move(run_id, State.RUNNING)  # a run may end before its first look
            elif verdict.state == State.STOPPED:
                services.move(run_id, State.STOPPING)
            if not services.move(run_id, verdict.state, reason=verdict.reason, **fields):
                log.warning("run %s ended as %s, but others had ended it before", run_id, verdict.state)
            return
        except DatabaseError:
            log.exception("run %s: its verdict could not be written; again in %s s", run_id, pause_seconds)
            time.sleep(pause_seconds)


def log_tail(path: Path) -> str:
    """The last lines of what a rank printed."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - LOG_TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-LOG_TAIL_LINES:])
