"""From this process's clock to the run's and back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class RunClock:
    """The run's clock is rank 0's monotonic clock less `zero_ns`; `offset_ns` leads from this clock to rank 0's."""

    zero_ns: int
    offset_ns: int = 0

    def to_run(self, local_ns: int) -> int:
        return local_ns + self.offset_ns - self.zero_ns

    def to_local(self, run_ns: int) -> int:
        return run_ns - self.offset_ns + self.zero_ns
