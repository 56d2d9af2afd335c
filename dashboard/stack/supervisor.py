"""The embedded stack: its parts, started in order, kept alive, reported on, stopped in order."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from dashboard.conf import ROOT, redis_url_file
from dashboard.stack import files, valkey
from dashboard.stack.child import Child, Part
from dashboard.stack.health import Health, Probes, redis_answers

REDIS_PATIENCE_SECONDS = 15.0
_READY_PATIENCE_SECONDS = 9.0  # then the address is printed whatever is still coming
_STOP_ORDER = ("worker", "exporter", "recorder", "web", "redis")  # whoever is asked last is needed by those before
_WAKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)

# It makes files, one after another; no worker does, since a run may keep that busy for days.
_EXPORTER = ["worker", "-n", f"exporter-{os.getpid()}@{socket.gethostname()}", "--pool", "solo", "--loglevel", "INFO",
             "--without-gossip", "--without-mingle", "--without-heartbeat"]


class RedisAway(Exception):
    """There is no Redis, so there can be no stack."""


class Supervisor:
    """`say` prints a line; `greet` is called once with the address when the parts are there."""

    def __init__(self, home: Path, listener: socket.socket, url: str, given_redis: str, with_worker: bool,
                 say: Callable[[str], None], greet: Callable[[], None]):
        self._home = home
        self._url = url
        self._say = say
        self._greet = greet
        self._has_greeted = False
        self._said: dict[str, str] = {}
        self._stop_wanted = False
        self._own_redis = None if given_redis else valkey.prepare(home)
        self._redis_url = self._own_redis.url if self._own_redis else given_redis
        self._node = f"lockstep-{os.getpid()}@{socket.gethostname()}"
        self._parts = self._plan(listener, with_worker)
        self._exporter = Part("exporter", [sys.executable, "-m", "celery", "-q", "-A", "dashboard.exporting", *_EXPORTER], 5)
        self._children: dict[str, Child] = {}
        self._probes = Probes(self._redis_url, url, self._node)

    def _plan(self, listener: socket.socket, with_worker: bool) -> list[Part]:
        python = sys.executable
        celery = [python, "-m", "celery", "-q", "-A", "workers.app", "worker", "-n", self._node, "--loglevel", "INFO",
                  "--without-gossip", "--without-mingle", "--without-heartbeat"]
        parts = [
            Part("web", [python, "-m", "dashboard.stack.serve", "--fd", str(listener.fileno())], 4, [listener.fileno()]),
            Part("recorder", [python, str(ROOT / "manage.py"), "record"], 5),
        ]
        return [*parts, Part("worker", celery, 10)] if with_worker else parts

    def run(self, prepare: Callable[[], object]) -> None:
        """Until a signal asks for the end. `prepare` runs while Redis comes up. Raises RedisAway."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _WAKING)  # they are waited for, one at a time, in `_wait`
        started_at = time.monotonic()
        try:
            if self._own_redis:
                self._start(Part("redis", self._own_redis.command, 5))
            prepare()
            self._await_redis()
            files.write_private(redis_url_file(self._home), self._redis_url + "\n")
            for part in self._parts:
                self._start(part)
            self._probes.start()
            while not self._stop_wanted:
                self._wait(0.25)
                self._care()
                self._report()
                if not self._has_greeted and (self._all_ready() or time.monotonic() - started_at > _READY_PATIENCE_SECONDS):
                    self._welcome()
        finally:
            self._stop()

    def _start(self, part: Part) -> None:
        environment = os.environ | {"LOCKSTEP_HOME": str(self._home), "DJANGO_SETTINGS_MODULE": "dashboard.settings"}
        child = self._children[part.name] = Child(part, self._home / "logs" / f"{part.name}.log", environment)
        child.start()

    def _await_redis(self) -> None:
        give_up, has_said = time.monotonic() + REDIS_PATIENCE_SECONDS, False
        while not redis_answers(self._redis_url):
            if self._own_redis and not self._children["redis"].is_alive:
                raise RedisAway(f"Valkey did not start; its log: {self._children['redis'].log}")
            if time.monotonic() > give_up or self._stop_wanted:
                raise RedisAway(self._what_to_do())
            if not has_said and not self._own_redis:
                self._say(line("redis", "waiting", 0, f"no answer yet; trying for {REDIS_PATIENCE_SECONDS:g} s"))
                has_said = True
            self._wait(0.05 if self._own_redis else 0.5)

    def _what_to_do(self) -> str:
        if self._own_redis:
            return f"Valkey does not answer; its log: {self._children['redis'].log}"
        return ("The Redis of REDIS_URL does not answer. Start it, correct REDIS_URL, or unset it: "
                "then a Valkey of Lockstep's own is started.")

    def _wait(self, seconds: float) -> None:
        received = signal.sigtimedwait(_WAKING, seconds)
        if received is not None and received.si_signo != signal.SIGCHLD:
            self._stop_wanted = True

    def _care(self) -> None:
        for name, child in self._children.items():
            if words := child.care():
                self._say(line(name, "down", 0, words))
                self._said.pop(name, None)
        if self._probes.worker_stalled:
            worker = self._children["worker"]
            self._say(line("worker", "stalled", worker.pid, "it does not answer although Redis does; it starts again"))
            worker.kill()
            self._probes.excuse_worker()
        self._probes.pids = {name: child.pid for name, child in self._children.items() if child.is_alive}

    def _report(self) -> None:
        """A line for every part whose health has changed."""
        for name, health in self._probes.found.items():
            child = self._children.get(name)
            if child is not None and not child.is_alive:
                continue
            words = line(name, "ready" if health.is_ready else "waiting", child.pid if child else 0, health.words)
            if self._said.get(name) != words:
                self._said[name] = words
                self._say(words)

    def _all_ready(self) -> bool:
        nothing = Health(False, "")
        return all(self._probes.found.get(name, nothing).is_ready for name in ("redis", *(part.name for part in self._parts)))

    def _welcome(self) -> None:
        self._has_greeted = True
        files.publish(self._home, files.Stack(os.getpid(), self._url, time.time()))
        self._greet()
        self._start(self._exporter)  # nobody waits for it

    def _stop(self) -> None:
        self._probes.end()
        files.withdraw(self._home)
        if self._has_greeted:
            self._say("Stopping.")
        for name in _STOP_ORDER:
            if name in self._children:
                self._children[name].stop()
        redis_url_file(self._home).unlink(missing_ok=True)


def line(name: str, state: str, pid: int, words: str) -> str:
    return f"{name:<9} {state:<8} {f'pid {pid}' if pid else '':<11} {words}".rstrip()
