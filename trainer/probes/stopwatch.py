"""How long work took on the device that it was queued on."""

from __future__ import annotations

import time

import torch


class Stopwatch:
    """On a CPU work is done when its call returns. On CUDA a call only queues it: there an event before it and one behind
    it, on the current stream, say how long the device took, and whoever asks waits for the second one."""

    def __init__(self, device: torch.device):
        self._queues = device.type == "cuda"
        self._began: torch.cuda.Event | None = None

    def start(self) -> None:
        if self._queues:
            self._began = torch.cuda.Event(enable_timing=True)
            self._began.record()

    def times(self, start_ns: int, done_ns: int) -> tuple[int, int]:
        """When the work since `start` began and was done, ns, of which the host thinks that it was from `start_ns` to `done_ns`.

        On CUDA it does not begin before `start_ns`, though the host may hear of its end some microseconds late.
        """
        if self._began is None:
            return start_ns, done_ns
        ended = torch.cuda.Event(enable_timing=True, blocking=True)
        ended.record()
        ended.synchronize()
        done_ns = time.monotonic_ns()
        lasted_ns = round(self._began.elapsed_time(ended) * 1e6)
        self._began = None
        return max(start_ns, done_ns - lasted_ns), done_ns
