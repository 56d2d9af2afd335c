"""Each rank's offset to rank 0's clock, by midpoint exchanges over UDP: of many, the quickest counts.

An exchange that took r ns pins the offset to within r/2, whatever the two ways took singly (Cristian's
algorithm). `trainer.trace.clock_line` makes of several such measurements how the clocks drift apart.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable

from trainer.trace.clock_line import MOST_DRIFT, Line, Sample, fitted

log = logging.getLogger(__name__)

FIRST_ROUNDS, ROUNDS = 20, 8
KEPT_SAMPLES = 20  # ten minutes: a drift follows the temperature
FIRST_PAUSE_SECONDS, PAUSE_SECONDS = 0.25, 30.0  # it doubles from one to the other: drift shows soon in a short run

_ASK = struct.Struct("<Q")  # a number that the answer repeats
_ANSWER = struct.Struct("<Qq")  # and rank 0's monotonic clock, ns

Clock = Callable[[], int]


def this_clock() -> int:
    return time.monotonic_ns()


class ClockServer:
    """Answers with this process's monotonic clock, on a UDP port of its own, until closed."""

    def __init__(self, host: str = "127.0.0.1", clock: Clock = this_clock):
        self._clock = clock
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
                    self._socket.sendto(_ANSWER.pack(_ASK.unpack(asked)[0], self._clock()), asker)
            except OSError as error:  # such as a port that is gone; others may still ask
                log.debug("an exchange of clocks failed: %s", error)


def measure(
    address: tuple[str, int], rounds: int = FIRST_ROUNDS, timeout_seconds: float = 0.25, clock: Clock = this_clock
) -> Sample:
    """The quickest of many exchanges with rank 0. TimeoutError if nobody answers."""
    best: Sample | None = None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect(address)
        asking.settimeout(timeout_seconds)
        missed = 0
        for _ in range(rounds):
            try:
                sample = _exchange(asking, clock)
            except OSError:
                missed += 1
                if missed == 3 and best is None:
                    break
                continue
            if best is None or sample.uncertainty_ns < best.uncertainty_ns:
                best = sample
    if best is None:
        raise TimeoutError(f"rank 0's clock at {address[0]}:{address[1]} does not answer")
    return best


def _exchange(asking: socket.socket, clock: Clock) -> Sample:
    number = secrets.randbits(64)
    before_ns = clock()
    asking.send(_ASK.pack(number))
    while True:
        answer = asking.recv(64)
        after_ns = clock()
        if len(answer) == _ANSWER.size:
            repeated, server_ns = _ANSWER.unpack(answer)
            if repeated == number:  # else it answers a question that was given up
                middle_ns = (before_ns + after_ns) // 2
                return Sample(middle_ns, server_ns - middle_ns, (after_ns - before_ns) / 2 + 1)


class ClockLine:
    """The line through the measurements so far; begins anew when a clock has jumped. Knows no threads."""

    def __init__(self, first: Sample):
        self.jump: tuple[Sample, Sample] | None = None  # the last measurement before the latest jump, the first after it
        self._samples: deque[Sample] = deque([first], KEPT_SAMPLES)
        self._suspect: Sample | None = None
        self.line = fitted(self._samples)

    def take(self, sample: Sample) -> bool:
        """Whether the line took it in. One that no drift explains is put aside until the next one says the same."""
        last = self._samples[-1]
        if _agree(last, sample):
            self._suspect = None
            off_ns = abs(sample.offset_ns - self.line.offset_at(sample.local_ns))
            if off_ns > sample.uncertainty_ns + self.line.uncertainty_at(sample.local_ns):  # the drift has changed
                self._samples = deque([last], KEPT_SAMPLES)
            self._samples.append(sample)
        elif self._suspect is not None and _agree(self._suspect, sample):
            self.jump = last, self._suspect
            self._samples = deque([self._suspect, sample], KEPT_SAMPLES)
            self._suspect = None
        else:
            self._suspect = sample
            return False
        self.line = fitted(self._samples)
        return True


def _agree(before: Sample, after: Sample) -> bool:
    """Whether the clocks may have shown both without a jump."""
    allowed_ns = before.uncertainty_ns + after.uncertainty_ns + MOST_DRIFT * abs(after.local_ns - before.local_ns)
    return abs(after.offset_ns - before.offset_ns) <= allowed_ns


class ClockKeeper:
    """Measures again and again, and gives `apply` each line that comes of it, and `tell` a clock's jump.

    `first` is the measurement to begin with; `apply` gets the line through it at once.
    """

    def __init__(
        self,
        address: tuple[str, int],
        apply: Callable[[Line], None],
        first: Sample,
        tell: Callable[[Sample, Sample], None] = lambda before, after: None,
        pauses_seconds: tuple[float, float] = (FIRST_PAUSE_SECONDS, PAUSE_SECONDS),
        clock: Clock = this_clock,
    ):
        self._address, self._apply, self._tell, self._pauses_seconds = address, apply, tell, pauses_seconds
        self._clock = clock
        self._lines = ClockLine(first)
        apply(self._lines.line)
        self._process = os.getpid()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="clock-keeper", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        if os.getpid() == self._process:
            self._thread.join(1)

    def _work(self) -> None:
        pause_seconds, longest_seconds = self._pauses_seconds
        while not self._closed.wait(pause_seconds):
            try:
                if not self._look():
                    self._look()  # at once: does the clock stay where it seems to have jumped to?
            except OSError as error:  # TimeoutError is one: rank 0 may be gone already
                log.debug("the clock keeps its line: %s", error)
            pause_seconds = min(2 * pause_seconds, longest_seconds)

    def _look(self) -> bool:
        before = self._lines.jump
        was_taken = self._lines.take(measure(self._address, ROUNDS, clock=self._clock))
        if was_taken:
            self._apply(self._lines.line)
        if self._lines.jump is not None and self._lines.jump is not before:
            self._tell(*self._lines.jump)
        return was_taken
