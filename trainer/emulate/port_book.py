"""When a transfer passes the ports at its two ends. A port sends, or receives, one message after the other."""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import threading
from pathlib import Path

_MOST_BUSY = 16  # times of a port that are told apart, each when it begins and ends in this machine's monotonic ns
_BUSY = struct.Struct(f"<{2 * _MOST_BUSY}q")

Busy = list[tuple[float, float]]  # from when to when, in order


def first_room(one: Busy, other: Busy, ready: float, lasts: float) -> float:
    """When both ports are free for as long as a transfer lasts that is ready then. One that comes late to what it was to send
    earlier does not queue behind what is later."""
    begins = ready
    for busy_from, busy_to in sorted(one + other):
        if busy_from >= begins + lasts:
            break
        begins = max(begins, busy_to)
    return begins


class PortBook:
    """Shared memory of one run: when each port is busy. `path` is a file that all ranks of the run open."""

    def __init__(self, path: Path, ports: int):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(self._file, max(1, ports) * _BUSY.size)  # whoever comes later changes nothing
        self._memory = mmap.mmap(self._file, max(1, ports) * _BUSY.size)
        self._lock = threading.Lock()  # a file's lock is between processes, not between threads

    def reserve(self, ports: tuple[int, int], from_ns: int, duration_ns: int) -> int:
        """When a transfer through both `ports` that is ready at `from_ns` will have passed them, ns."""
        with self._lock:
            fcntl.lockf(self._file, fcntl.LOCK_EX)
            try:
                busy = [self._busy(port) for port in ports]
                end_ns = int(first_room(busy[0], busy[1], from_ns, duration_ns)) + duration_ns
                for port, times in zip(ports, busy, strict=True):
                    self._keep(port, _with(times, (end_ns - duration_ns, end_ns)))
                return end_ns
            finally:
                fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _busy(self, port: int) -> Busy:
        numbers = _BUSY.unpack_from(self._memory, port * _BUSY.size)
        return [span for span in zip(numbers[::2], numbers[1::2], strict=True) if span[1]]

    def _keep(self, port: int, busy: Busy) -> None:
        numbers = [number for span in busy for number in span]
        _BUSY.pack_into(self._memory, port * _BUSY.size, *numbers, *[0] * (2 * _MOST_BUSY - len(numbers)))


def _with(times: Busy, new: tuple[float, float]) -> Busy:
    """In order; times that touch are one, and the earliest ones too where there are more than can be told apart."""
    found: Busy = []
    for span in sorted([*times, new]):
        if found and span[0] <= found[-1][1]:
            found[-1] = found[-1][0], max(span[1], found[-1][1])
        else:
            found.append(span)
    while len(found) > _MOST_BUSY:
        found[:2] = [(found[0][0], found[1][1])]
    return found
