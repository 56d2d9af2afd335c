"""The warm host of ranks: torch is loaded once, and a run's ranks are forks, ready in hundredths of a second.

`python -m trainer.host --socket NAME --parent PID` listens on the abstract unix socket NAME. A
connection is a run: its first line is the request (`trainer.host_run.Request`), later lines are
commands, `{"do": "stop" | "terminate" | "kill"}`; the host answers with lines of `started`, `steps`,
`exit` for each rank, `restarted` where all begin again, and `done`. A connection that ends takes its run with it. The line
`{"status": true}` asks what this host can do, and is answered once torch is loaded.

The loop has one thread and torch never computes in it: a fork of a process with threads would copy
locks that nobody opens again.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import selectors
import signal
import socket
import struct
import sys
import time
import traceback
from typing import Any

from trainer.host_run import HostedRun, Request
from trainer.lifeline import die_with_parent
from trainer.privileges import realtime_refusal

STEPS_EVERY_SECONDS = 0.25
# What the entry itself imports late or not at all. The first optimizer of a process loads torch._dynamo, two
# seconds of work, though nothing is ever compiled.
PRELOAD = ("torch", "torch.distributed", "torch.nn.parallel", "torch._dynamo")
_PEER = struct.Struct("3i")  # pid, uid, gid
_LONGEST_LINE_BYTES = 1 << 20


class Connection:
    """A supervisor's end, and the run that it asked for."""

    def __init__(self, link: socket.socket):
        link.setblocking(False)
        self.link = link
        self.run: HostedRun | None = None
        self._unread = b""
        self.is_open = True

    def send(self, message: dict[str, Any]) -> None:
        if not self.is_open:
            return
        try:
            line = json.dumps(message).encode() + b"\n"
            self.is_open = self.link.send(line) == len(line)
        except OSError:
            # Gone, or so far behind that the buffer is full: no supervisor that lives is.
            self.is_open = False

    def read(self) -> list[dict[str, Any]]:
        try:
            data = self.link.recv(65536)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        self._unread += data
        if not data or len(self._unread) > _LONGEST_LINE_BYTES:
            self.is_open = False
        *lines, self._unread = self._unread.split(b"\n")
        return [json.loads(line) for line in lines]


class Host:
    def __init__(self, listener: socket.socket, entry: str, status: dict[str, Any]):
        self._entry = entry
        self._status = status
        self._connections: list[Connection] = []
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._woken, wake = socket.socketpair()
        self._woken.setblocking(False)
        wake.setblocking(False)
        self._wake = wake
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._leaving = False
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # the wake-up is what matters
        signal.signal(signal.SIGTERM, self._leave)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the supervisors, who end their runs in order

    def _leave(self, *_: object) -> None:
        self._leaving = True

    def serve(self) -> None:
        steps_due = 0.0
        while not (self._leaving and not self._connections):
            for key, _events in self._selector.select(self._patience(steps_due)):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._woken:
                    self._drain()
                else:
                    self._hear(key.data)
            if self._leaving:
                for connection in self._connections:
                    connection.is_open = False
            if time.monotonic() >= steps_due:
                steps_due = time.monotonic() + STEPS_EVERY_SECONDS
                for connection in self._connections:
                    if connection.run is not None:
                        connection.run.tell_steps()
            self._care()

    def _patience(self, steps_due: float) -> float | None:
        """Seconds until something is due; None while there is no run."""
        moments = [connection.run.due for connection in self._connections if connection.run is not None]
        if not moments:
            return None
        return max(0.0, min([steps_due, *(moment for moment in moments if moment is not None)]) - time.monotonic())

    def _accept(self) -> None:
        link, _address = self._listener.accept()
        _pid, uid, _gid = _PEER.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        if uid != os.getuid():
            print(f"rank host: refused a connection of user {uid}", file=sys.stderr)
            link.close()
            return
        connection = Connection(link)
        self._connections.append(connection)
        self._selector.register(link, selectors.EVENT_READ, connection)

    def _drain(self) -> None:
        try:
            while self._woken.recv(4096):
                pass
        except BlockingIOError:
            pass

    def _hear(self, connection: Connection) -> None:
        try:
            for message in connection.read():
                self._obey(connection, message)
        except Exception as error:  # whatever a line asked for, the other runs go on
            traceback.print_exc()
            connection.send({"type": "refused", "reason": f"{type(error).__name__}: {error}"})
            connection.is_open = False

    def _obey(self, connection: Connection, message: dict[str, Any]) -> None:
        if "status" in message:
            connection.send({"type": "status", **self._status})
        elif connection.run is None:
            connection.run = HostedRun(Request.from_line(message), connection.send, self._entry)
            connection.run.start()
        elif message["do"] == "stop":
            connection.run.ask()
        else:
            connection.run.end({"terminate": signal.SIGTERM, "kill": signal.SIGKILL}[message["do"]])

    def _care(self) -> None:
        """Reap, send due signals, and let go of what is over."""
        for connection in list(self._connections):
            run = connection.run
            if run is not None:
                run.reap()
                run.climb()
                if not connection.is_open:
                    run.end(signal.SIGKILL)
                if run.is_over:
                    connection.is_open = False
            if not connection.is_open and connection.link.fileno() >= 0:
                self._selector.unregister(connection.link)  # a closed end would wake the loop for ever
                connection.link.close()
            if not connection.is_open and (run is None or run.is_over):
                self._connections.remove(connection)


def load(entry: str) -> None:
    """Import what ranks need. An error is not the host's end: each rank meets it again and has it in its log."""
    for module in (*PRELOAD, entry.partition(":")[0]):
        try:
            importlib.import_module(module)
        except Exception:
            traceback.print_exc()
    threads = len(os.listdir("/proc/self/task"))
    if threads > 1:
        print(f"rank host: {threads} threads after loading; ranks forked from them may hang", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(prog="trainer.host", description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--socket", required=True, help="name of the abstract unix socket")
    parser.add_argument("--parent", type=int, default=0, help="process with which this one dies")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="the best that its ranks may ask for")
    parser.add_argument("--entry", default="trainer.rank:main", help="what a rank runs, as module:function")
    options = parser.parse_args()
    if options.parent:
        die_with_parent(options.parent)
    # Before any library starts its pool: a rank is one thread, as its neighbours need the other cores.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind("\0" + options.socket)
    listener.listen(64)  # before loading: who comes early waits in the queue
    load(options.entry)
    if options.device == "cuda" and not importlib.import_module("torch").version.cuda:
        print("rank host: this torch was built without CUDA; jobs for cuda will fail", file=sys.stderr)
    refusal = realtime_refusal()
    Host(listener, options.entry, {"pid": os.getpid(), "realtime": not refusal, "realtime_refusal": refusal}).serve()


if __name__ == "__main__":
    main()
