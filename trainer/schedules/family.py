"""All schedules by name: how each is made, what it asks for, and what a rank holds at most."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trainer.schedules import (
    breadth_first,
    dualpipe,
    dualpipe_v,
    gpipe,
    interleaved,
    interleaved_zero_bubble,
    one_f_one_b,
    zb_h1,
    zb_v,
)
from trainer.schedules.actions import Schedule
from trainer.schedules.naive import naive

MOST_CHUNKS = 16


@dataclass(frozen=True)
class Family:
    """`held` counts activations, each of one micro-batch in one stage."""

    make: Callable[[int, int, int], Schedule]  # ranks, micro-batches, chunks
    held: Callable[[int, int, int, int], int]  # rank, ranks, micro-batches, chunks
    fewest_chunks: int = 1  # stages a rank holds
    most_chunks: int = 1
    in_rounds: bool = False  # micro-batches go round in groups of as many as there are ranks
    least_a_rank: int = 0  # micro-batches for each rank
    ways: int = 1  # 2: half of the micro-batches go up the ranks, through a second copy of every stage


SCHEDULES = {
    "naive": Family(lambda p, m, v: naive(p, m), lambda rank, p, m, v: 1),
    "gpipe": Family(lambda p, m, v: gpipe.gpipe(p, m), lambda rank, p, m, v: m),
    "1f1b": Family(lambda p, m, v: one_f_one_b.one_f_one_b(p, m), lambda rank, p, m, v: one_f_one_b.held(rank, p, m)),
    "interleaved": Family(interleaved.interleaved, interleaved.held, 2, MOST_CHUNKS, in_rounds=True),
    "breadth-first": Family(breadth_first.breadth_first, lambda rank, p, m, v: m * v, 2, MOST_CHUNKS),
    "zb-h1": Family(lambda p, m, v: zb_h1.zb_h1(p, m), lambda rank, p, m, v: zb_h1.held(p, m)),
    "interleaved-zb": Family(interleaved_zero_bubble.interleaved_zero_bubble,
                             lambda rank, p, m, v: interleaved_zero_bubble.held(p, m, v), 2, MOST_CHUNKS, in_rounds=True),
    "zb-v": Family(lambda p, m, v: zb_v.zb_v(p, m), lambda rank, p, m, v: zb_v.held(p, m), 2, 2),
    "dualpipe-v": Family(lambda p, m, v: dualpipe_v.dualpipe_v(p, m), lambda rank, p, m, v: dualpipe_v.held(p), 2, 2,
                         least_a_rank=2),
    "dualpipe": Family(lambda p, m, v: dualpipe.dualpipe(p, m), lambda rank, p, m, v: dualpipe.held(p), least_a_rank=2, ways=2),
}
