"""What a process takes of the machine while something goes on: processor time and memory, from /proc."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
SAMPLE_SECONDS = 0.2


def cpu_seconds(pid: int) -> float:
    """Of all its threads so far, proc(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES / 1e6


class ServerCost:
    """Of the process `pid`: memory from the start on, processor time from `begin` until `end`."""

    def __init__(self, pid: int):
        self.pid = pid
        self.mb_before = self.mb_peak = resident_mb(pid)
        self.cores = 0.0  # how many of them it kept busy
        self._began_at, self._cpu_before = time.monotonic(), cpu_seconds(pid)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="server-cost", daemon=True)
        self._thread.start()

    def begin(self) -> None:
        self._began_at, self._cpu_before = time.monotonic(), cpu_seconds(self.pid)

    def end(self) -> None:
        self.cores = (cpu_seconds(self.pid) - self._cpu_before) / (time.monotonic() - self._began_at)
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            self.mb_peak = max(self.mb_peak, resident_mb(self.pid))

    def per_viewer(self, viewers: int) -> dict[str, float]:
        """Keys of `dashboard.bench.live`'s answer."""
        return {
            "server_cores": round(self.cores, 4),
            "server_cores_per_viewer": round(self.cores / viewers, 4),
            "server_mb_before": round(self.mb_before, 1),
            "server_mb_peak": round(self.mb_peak, 1),
            "server_mb_per_viewer": round((self.mb_peak - self.mb_before) / viewers, 2),
        }
