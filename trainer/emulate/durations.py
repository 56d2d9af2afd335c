"""How long each action is modelled to last. Nothing here loads torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainer.schedules.actions import Do

if TYPE_CHECKING:
    from trainer.spec import Pace


def durations_ms(pace: Pace, chunks: int = 1) -> dict[Do, float]:
    """What each action of one micro-batch in one stage is modelled to last; the halves of a backward share it equally.

    The pace is that of a rank: of `chunks` stages that it holds, each has so much less to do.
    """
    forward, backward = pace.forward_ms / chunks, pace.backward_ms / chunks
    return {
        Do.FORWARD: forward,
        Do.BACKWARD: backward,
        Do.BACKWARD_INPUT: backward / 2,
        Do.BACKWARD_WEIGHT: backward / 2,
    }
