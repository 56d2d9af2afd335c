"""The pace: how long an action of a stage is made to last.

Two cores cannot run eight ranks at once, so a paced rank does its small real work and then sleeps until the
action's modelled duration is over. Sleeping ranks overlap as they would on as many devices.
"""

from __future__ import annotations

import time

from trainer.emulate.durations import durations_ms
from trainer.schedules.actions import Do
from trainer.spec import Pace


class Pacer:
    """Stretches actions to their modelled durations, of ranks that hold `chunks` stages each; the real pace changes nothing."""

    def __init__(self, pace: Pace, chunks: int = 1):
        self._paced = pace.kind == "paced"
        self._durations_ns = {do: round(ms * 1e6) if self._paced else 0 for do, ms in durations_ms(pace, chunks).items()}
        self._work_ns = dict.fromkeys(Do, 0)  # what the real work after a rest took last time
        self._work_began_ns = 0
        self._rested = False

    def begin(self, free_ns: int, sent_ns: int) -> int:
        """When an action that can run now began, ns.

        A device works while its host prepares what comes next. So a paced action whose data was on its way
        before the stage was free, at `free_ns`, began at that moment: what Python did since is not idle time.
        """
        self._work_began_ns, self._rested = time.monotonic_ns(), False
        return free_ns if self._paced and sent_ns <= free_ns else self._work_began_ns

    def rest_before(self, do: Do, start_ns: int) -> None:
        """Sleep first, and leave just the time for the real work.

        For a backward that averages gradients: on a device, too, the last of them are there only at the end.
        """
        left_ns = start_ns + self._durations_ns[do] - self._work_ns[do] - time.monotonic_ns()
        if left_ns > 0:
            time.sleep(left_ns * 1e-9)
        self._work_began_ns, self._rested = time.monotonic_ns(), True

    def finish(self, do: Do, start_ns: int, computed_ns: int) -> int:
        """Sleep until an action that began at `start_ns` is to be over. When it was over, ns.

        One whose real work, done at `computed_ns`, took longer than its model is over then.
        """
        modelled_ns = start_ns + self._durations_ns[do]
        if self._rested:
            self._work_ns[do] = computed_ns - self._work_began_ns
        left_ns = modelled_ns - time.monotonic_ns()
        if left_ns <= 0:
            return max(modelled_ns, computed_ns)
        time.sleep(left_ns * 1e-9)
        return time.monotonic_ns()
