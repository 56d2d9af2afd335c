"""What the system lets this process do."""

from __future__ import annotations

import os


def realtime_refusal() -> str:
    """Why this thread may not take the round-robin real-time class; empty when it may."""
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError as error:
        return error.strerror or str(error)
    os.sched_setscheduler(0, policy, parameters)
    return ""
