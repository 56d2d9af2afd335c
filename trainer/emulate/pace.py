"""The pace: how long an action of a stage is made to last.

Two cores cannot run eight ranks at once, so a paced rank does its small real work and then sleeps until the
action's modelled duration is over. Sleeping ranks overlap as they would on as many devices.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from trainer.emulate.durations import durations_ms
from trainer.emulate.moment import Moment
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

    def __init__(self, spec: JobSpec, moment: Moment, slowness: Callable[[int], float] = lambda step: 1.0):
        self._paced, self.moment, self._slowness = spec.pace.is_emulated, moment, slowness
        self._links_are_modelled = spec.links.kind == "modelled"
        lasts_ms = durations_ms(spec) if self._paced else dict.fromkeys(Do, 0.0)
        self._modelled_ns = {
            (do, stage): round(ms * share * 1e6) for stage, share in enumerate(shares_of(spec)) for do, ms in lasts_ms.items()
        }
        self._durations_ns = self._modelled_ns
        self._factor = 1.0
        self._work_ns = dict.fromkeys(self._durations_ns, 0)  # what the real work that came last took last time
        self._work_began_ns = 0
        self._work_is_last = False
        self._talk_begins_ns = 0

    def begin_step(self, step: int, first: Action) -> None:
        """What went on since the last step is no part of this one, where its first action could not hold it."""
        if time.monotonic_ns() - self.moment.ns > self._durations_ns[first.do, first.stage]:
            self.moment.catch_up()
        factor = self._slowness(step)
        if factor != self._factor:
            self._factor = factor
            self._durations_ns = {key: round(modelled_ns * factor) for key, modelled_ns in self._modelled_ns.items()}

    def begin(self, sent_ns: int) -> int:
        """When an action that can run now began, ns: a paced one as soon as its rank was free, if its data was on its way
        by then; else with the data, that was sent at `sent_ns`, or over a modelled link arrived then."""
        self._work_is_last = False
        if self._paced and sent_ns <= self.moment.ns:
            return self.moment.ns
        return sent_ns if self._paced and self._links_are_modelled else time.monotonic_ns()

    def rest(self, action: Action, start_ns: int, work_last: bool, averages_beside: bool) -> None:
        """Sleep before the real work of an action that began at `start_ns`: until others have handed on.

        With `work_last` leave just the time for the work. That is for the backward that fills the last bucket of
        gradients: on a device, too, it is full only at the end. Behind such an action its buckets leave, where that goes on
        beside (`averages_beside`).
        """
        key = action.do, action.stage
        lasts_ns = self._durations_ns[key]
        begins_ns = start_ns + (lasts_ns - self._work_ns[key] if work_last else others_hand_on_ns(lasts_ns))
        _sleep_until(begins_ns)
        self._work_began_ns, self._work_is_last = time.monotonic_ns(), work_last
        self.moment.reach(begins_ns)
        self._talk_begins_ns = self.moment.ns
        if averages_beside:
            self.moment.beside_from_ns = start_ns + lasts_ns

    def finish(self, action: Action, start_ns: int, computed_ns: int) -> int:
        """Sleep until an action that began at `start_ns` is to be over. When it was over, ns.

        One whose real work, done at `computed_ns`, took longer than its model is over then. One that talked longer is when
        its last message was there, though Python came to it a little later.
        """
        key = action.do, action.stage
        if self._work_is_last:
            self._work_ns[key] = computed_ns - self._work_began_ns
        if not self._paced:
            end_ns = start_ns + round((computed_ns - start_ns) * self._factor)
            return time.monotonic_ns() if _sleep_until(end_ns) else max(end_ns, computed_ns)
        lasts_ns, talked_ns = self._durations_ns[key], self.moment.ns
        end_ns = max(start_ns + lasts_ns, talked_ns)
        late_ns = lasts_ns // _MOST_SHARE if talked_ns > self._talk_begins_ns else 0
        if computed_ns > end_ns + late_ns:
            end_ns = computed_ns
        _sleep_until(end_ns)
        self.moment.reach(end_ns)
        return end_ns


def _sleep_until(moment_ns: int) -> bool:
    """Whether the moment was still to come."""
    left_ns = moment_ns - time.monotonic_ns()
    if left_ns > 0:
        time.sleep(left_ns * 1e-9)
    return left_ns > 0
