"""Which samples a step takes, the same on every rank, and which of them are a copy's."""

from __future__ import annotations

import numpy as np


def endless_order(count: int, seed: int, start: int, length: int) -> np.ndarray:
    """Places `start` … `start + length` of an endless order of `count` samples, shuffled anew each time round."""
    places = np.arange(start, start + length)
    rounds = places // count
    chosen = np.empty(length, np.int64)
    for number in np.unique(rounds):
        order = np.random.default_rng((seed, int(number))).permutation(count)
        here = rounds == number
        chosen[here] = order[places[here] % count]
    return chosen


def share(samples: np.ndarray, copies: int, copy: int, micro_batches: int) -> np.ndarray:
    """The samples of one copy of the model, a row for each micro-batch; all copies' rows make up `samples`.

    Copies take turns through the batch, as torch's DistributedSampler deals samples out.
    """
    return samples[copy::copies].reshape(micro_batches, -1)
