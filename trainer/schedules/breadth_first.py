"""Looped breadth-first (Lamy-Poirier, "Breadth-First Pipeline Parallelism", 2022): GPipe over several thin stages a rank.

    rank 0 holds stages 0 and 2    F0 F1 F2 F0 F1 F2 .. B2 B1 B0 B2 B1 B0    (of stage 0, 2, 2, 0)

All micro-batches go through a chunk before the next one begins: the bubble is GPipe's over the number of chunks,
every activation is held, and the gradients of a chunk are whole as early as can be, which hides their averaging.
"""

from __future__ import annotations

from trainer.schedules.actions import Schedule, backward, forward


def breadth_first(ranks: int, micro_batches: int, chunks: int) -> Schedule:
    return [
        [forward(chunk * ranks + rank, m) for chunk in range(chunks) for m in range(micro_batches)]
        + [backward(chunk * ranks + rank, m) for chunk in reversed(range(chunks)) for m in reversed(range(micro_batches))]
        for rank in range(ranks)
    ]
