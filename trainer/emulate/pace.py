"""The pace: how long an action of a stage is made to last.

Two cores cannot run eight ranks at once, so a paced rank does its small real work and then sleeps until the
action's modelled duration is over. Sleeping ranks overlap as they would on as many devices.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from trainer.emulate.durations import durations_ms
from trainer.schedules.actions import Action, Do
from trainer.schedules.cuts import shares_of
from trainer.spec import JobSpec

# Where several ranks end an action at one moment and cores are few, what one hands on would have to wait until others have
# done the real work of their next action. That has time, so it waits for so long, but no more than an eighth of its action.
_HANDING_ON_NS = 2_000_000
_MOST_SHARE = 8


def others_hand_on_ns(lasts_ns: int) -> int:
    """For how long an action that lasts so long lets others go first."""
    return min(_HANDING_ON_NS, lasts_ns // _MOST_SHARE)


class Pacer:
    """Stretches actions to their modelled durations; the real pace changes nothing.

    `slowness` tells how many times as long as else this rank's actions take in a step: modelled ones, and real ones too.
    """

    def __init__(self, spec: JobSpec, slowness: Callable[[int], float] = lambda step: 1.0):
        self._paced, self._slowness = spec.pace.is_emulated, slowness
        lasts_ms = durations_ms(spec) if self._paced else dict.fromkeys(Do, 0.0)
        self._modelled_ns = {
            (do, stage): round(ms * share * 1e6) for stage, share in enumerate(shares_of(spec)) for do, ms in lasts_ms.items()
        }
        self._durations_ns = self._modelled_ns
        self._factor = 1.0
        self._work_ns = dict.fromkeys(self._durations_ns, 0)  # what the real work that came last took last time
        self._work_began_ns = 0
        self._work_is_last = False

    def begin_step(self, step: int) -> None:
        factor = self._slowness(step)
        if factor != self._factor:
            self._factor = factor
            self._durations_ns = {key: round(modelled_ns * factor) for key, modelled_ns in self._modelled_ns.items()}

    def begin(self, free_ns: int, sent_ns: int) -> int:
        """When an action that can run now began, ns.

        A device works while its host prepares what comes next. So a paced action whose data was on its way
        before the stage was free, at `free_ns`, began at that moment: what Python did since is not idle time.
        """
        self._work_is_last = False
        return free_ns if self._paced and sent_ns <= free_ns else time.monotonic_ns()

    def rest(self, action: Action, start_ns: int, work_last: bool) -> None:
        """Sleep before the real work of an action that began at `start_ns`: until others have handed on.

        With `work_last` leave just the time for the work. That is for the backward that fills the last bucket of
        gradients: on a device, too, it is full only at the end.
        """
        key = action.do, action.stage
        lasts_ns = self._durations_ns[key]
        _sleep_until(start_ns + (lasts_ns - self._work_ns[key] if work_last else others_hand_on_ns(lasts_ns)))
        self._work_began_ns, self._work_is_last = time.monotonic_ns(), work_last

    def finish(self, action: Action, start_ns: int, computed_ns: int) -> int:
        """Sleep until an action that began at `start_ns` is to be over. When it was over, ns.

        One whose real work, done at `computed_ns`, took longer than its model is over then.
        """
        key = action.do, action.stage
        lasts_ns = self._durations_ns[key] if self._paced else round((computed_ns - start_ns) * self._factor)
        modelled_ns = start_ns + lasts_ns
        if self._work_is_last:
            self._work_ns[key] = computed_ns - self._work_began_ns
        return time.monotonic_ns() if _sleep_until(modelled_ns) else max(modelled_ns, computed_ns)


def _sleep_until(moment_ns: int) -> bool:
    """Whether the moment was still to come."""
    left_ns = moment_ns - time.monotonic_ns()
    if left_ns > 0:
        time.sleep(left_ns * 1e-9)
    return left_ns > 0
