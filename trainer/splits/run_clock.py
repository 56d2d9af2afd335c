"""From this process's clock to the run's and back."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.trace.steady_clock import THIS_CLOCK, SteadyClock


@dataclass
class RunClock:
    """The run's clock is rank 0's monotonic clock less `zero_ns`; `steady` leads from this clock to rank 0's."""

    zero_ns: int
    steady: SteadyClock = THIS_CLOCK

    def to_run(self, local_ns: int) -> int:
        return self.steady.to_other(local_ns) - self.zero_ns

    def to_local(self, run_ns: int) -> int:
        return self.steady.to_local(run_ns + self.zero_ns)
