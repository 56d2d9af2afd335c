"""From this process's clock to the run's and back."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainer.trace.clock_line import Line


@dataclass
class RunClock:
    """The run's clock is rank 0's monotonic clock less `zero_ns`; `line` leads from this clock to rank 0's."""

    zero_ns: int
    line: Line = field(default_factory=Line)

    def to_run(self, local_ns: int) -> int:
        return self.line.to_other(local_ns) - self.zero_ns

    def to_local(self, run_ns: int) -> int:
        return self.line.to_local(run_ns + self.zero_ns)
