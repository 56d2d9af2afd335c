"""Each rank's offset to rank 0's clock, by midpoint exchanges over UDP: of many, the quickest counts.

An exchange that took r ns pins the offset to within r/2, whatever the two ways took singly (Cristian's
algorithm). Between two measurements clocks drift apart, so an old offset's uncertainty grows.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

DRIFT_NS_PER_SECOND = 10_000  # 10 ppm: two machines disciplined by NTP drift by less

_ASK = struct.Struct("<Q")  # a number that the answer repeats
_ANSWER = struct.Struct("<Qq")  # and rank 0's monotonic clock, ns


class ClockServer:
    """Answers with this process's monotonic clock, on a UDP port of its own, until closed."""

    def __init__(self, host: str = "127.0.0.1"):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, 0))
        self.address: tuple[str, int] = self._socket.getsockname()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._answer, name="clock-server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as waker:  # closing a socket does not end a receive
            waker.sendto(b"", self.address)
        self._thread.join(1)
        self._socket.close()

    def _answer(self) -> None:
        while not self._closed.is_set():
            try:
                asked, asker = self._socket.recvfrom(64)
                if len(asked) == _ASK.size:
                    self._socket.sendto(_ANSWER.pack(_ASK.unpack(asked)[0], time.monotonic_ns()), asker)
            except OSError as error:  # such as a port that is gone; others may still ask
                log.debug("an exchange of clocks failed: %s", error)


def measure(address: tuple[str, int], rounds: int = 20, timeout_seconds: float = 0.25) -> tuple[float, float]:
    """(offset_ns, uncertainty_ns): rank 0's monotonic clock less this one's. TimeoutError if nobody answers."""
    best: tuple[float, float] | None = None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect(address)
        asking.settimeout(timeout_seconds)
        missed = 0
        for _ in range(rounds):
            try:
                offset_ns, uncertainty_ns = _exchange(asking)
            except OSError:
                missed += 1
                if missed == 3 and best is None:
                    break
                continue
            if best is None or uncertainty_ns < best[1]:
                best = offset_ns, uncertainty_ns
    if best is None:
        raise TimeoutError(f"rank 0's clock at {address[0]}:{address[1]} does not answer")
    return best


def _exchange(asking: socket.socket) -> tuple[float, float]:
    number = secrets.randbits(64)
    before_ns = time.monotonic_ns()
    asking.send(_ASK.pack(number))
    while True:
        answer = asking.recv(64)
        after_ns = time.monotonic_ns()
        if len(answer) == _ANSWER.size:
            repeated, server_ns = _ANSWER.unpack(answer)
            if repeated == number:  # else it answers a question that was given up
                return server_ns - (before_ns + after_ns) / 2, (after_ns - before_ns) / 2


class ClockKeeper:
    """Measures again every `every_seconds` and gives `apply` what is better than the old value has become.

    `first` is the measurement in use, as `measure` returned it.
    """

    def __init__(
        self,
        address: tuple[str, int],
        apply: Callable[[float, float], None],
        first: tuple[float, float],
        every_seconds: float = 30.0,
    ):
        self._address, self._apply, self._every_seconds = address, apply, every_seconds
        self._uncertainty_ns, self._measured_at = first[1], time.monotonic()
        self._process = os.getpid()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="clock-keeper", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        if os.getpid() == self._process:
            self._thread.join(1)

    def _work(self) -> None:
        while not self._closed.wait(self._every_seconds):
            try:
                self.consider(*measure(self._address))
            except OSError as error:  # TimeoutError is one: rank 0 may be gone already
                log.debug("the clock keeps its offset: %s", error)

    def consider(self, offset_ns: float, uncertainty_ns: float) -> bool:
        """Apply a new measurement if it is the better one; whether it was."""
        now = time.monotonic()
        aged_ns = self._uncertainty_ns + DRIFT_NS_PER_SECOND * (now - self._measured_at)
        if uncertainty_ns >= aged_ns:
            return False
        self._uncertainty_ns, self._measured_at = uncertainty_ns, now
        self._apply(offset_ns, uncertainty_ns)
        return True
