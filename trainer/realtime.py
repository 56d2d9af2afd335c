"""The round-robin real-time class, in which a paced rank wakes up on time on a busy machine."""

from __future__ import annotations

import os

from trainer.spec import JobSpec


def ask_for_realtime(spec: JobSpec) -> str:
    """"granted", "refused: why" or "not asked"; threads that start later inherit it.

    Without it a wake-up can be a scheduler's tick of 4 ms late, which a bubble of paced ranks shows.
    Ranks that really compute do not ask: they would starve the services beside them.
    """
    if not spec.pace.is_emulated:
        return "not asked"
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except (AttributeError, OSError) as error:  # not on every system, and where it is not everyone may
        return f"refused: {error}"
    return "granted"
