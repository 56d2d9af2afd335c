"""Names in Redis that ranks, recorder and web server share.

A run's stream holds entries with one of two fields: FRAME, the bytes of a frame; EVENT, a JSON
object with a `type` (the run's state, its progress, a step's figures, its end).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FRAME = b"f"
EVENT = b"e"

RECORDERS = "recorders"  # the consumer group that seals what a stream holds
LIVE_RUNS = "lockstep:live"  # a set: ids of runs whose streams still grow or are not sealed yet
RECORDER = "lockstep:recorder"  # JSON: the recorder's pid, host, lag and what it sealed; expires when it falls silent
WORKERS = "lockstep:worker:"  # + name: JSON, expires when its worker falls silent


def frames_key(run_id: str) -> str:
    return f"lockstep:run:{run_id}:stream"


def beat_key(run_id: str) -> str:
    """A RunBeat as JSON; changes every second for as long as somebody supervises the run."""
    return f"lockstep:run:{run_id}:beat"


@dataclass(frozen=True)
class RunBeat:
    """`count` grows with every beat: clocks of two machines need not agree."""

    worker: str
    host: str
    worker_pid: int
    pid: int  # of the process that supervises the run
    count: int


def forget(client: Any, run_id: str) -> None:
    """Remove all that Redis knows of a run that has ended."""
    client.srem(LIVE_RUNS, run_id)
    client.delete(frames_key(run_id), beat_key(run_id))
