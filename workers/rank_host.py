"""The supervisor's end of the wire to the rank host; `trainer.host` says what goes over it."""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from pathlib import Path
from typing import Any

_PEER = struct.Struct("3i")  # pid, uid, gid
_KNOCK_AGAIN_SECONDS = 0.05


class HostGone(Exception):
    """The rank host cannot be reached, or has ended."""


class Link:
    """One run's connection to the rank host. When it closes, the host ends the run's ranks."""

    def __init__(self, name: str, patience_seconds: float):
        self._socket = _connect(name, patience_seconds)
        self._unread = b""

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def start(self, run: str, spec_json: str, folder: Path, redis_url: str, flush_ms: float) -> None:
        self._say({"run": run, "spec_json": spec_json, "folder": str(folder), "redis_url": redis_url, "flush_ms": flush_ms})

    def tell(self, command: str) -> None:
        """`stop`, `terminate` or `kill`."""
        self._say({"do": command})

    def ask_status(self) -> None:
        self._say({"status": True})

    def hear(self, patience_seconds: float) -> list[dict[str, Any]]:
        """What the host has said; empty when it says nothing for so long."""
        self._socket.settimeout(patience_seconds)
        try:
            data = self._socket.recv(65536)
        except TimeoutError:
            return []
        except OSError as error:
            raise HostGone(str(error)) from error
        if not data:
            raise HostGone("it closed the connection")
        *lines, self._unread = (self._unread + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def _say(self, message: dict[str, Any]) -> None:
        self._socket.settimeout(10)
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise HostGone(str(error)) from error


def _connect(name: str, patience_seconds: float) -> socket.socket:
    give_up = time.monotonic() + patience_seconds
    while True:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            link.connect("\0" + name)
            break
        except OSError as error:  # it is just starting
            link.close()
            if time.monotonic() > give_up:
                raise HostGone(str(error)) from error
            time.sleep(_KNOCK_AGAIN_SECONDS)
    _pid, uid, _gid = _PEER.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    if uid != os.getuid():
        link.close()
        raise HostGone(f"another user ({uid}) answers in its place")
    return link


def status(name: str, patience_seconds: float) -> dict[str, Any] | None:
    """What the host says of itself; None while it does not answer, since torch is loading."""
    try:
        with Link(name, patience_seconds) as link:
            link.ask_status()
            for message in link.hear(patience_seconds):
                if message["type"] == "status":
                    return message
    except HostGone:
        pass
    return None
