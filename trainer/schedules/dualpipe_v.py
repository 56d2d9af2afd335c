"""DualPipeV (Sea AI Lab, 2025, "Cut-in-half"; in DeepSeek's DualPipe repository): DualPipe folded into a V.

Where DualPipe's two ways meet, one half of the ranks does what the other does mirrored. Without that half, and with
stages in the shape of a V (see zb_v), no second copy of the model is needed.
"""

from __future__ import annotations

from trainer.schedules.actions import Action, Schedule
from trainer.schedules.dualpipe import two_ways


def dualpipe_v(ranks: int, micro_batches: int) -> Schedule:
    """For at least two micro-batches a rank."""
    return [
        [Action(do, (rank, 2 * ranks - 1 - rank)[way], m, beside)
         for do, way, m, beside in two_ways(rank, ranks, micro_batches)]
        for rank in range(ranks)
    ]


def held(ranks: int) -> int:
    """The most activations of thin stages that a rank holds: one more than there are stages (DeepSeek-AI, 2024)."""
    return 2 * ranks + 1
