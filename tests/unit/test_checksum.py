"""The sum over spans: the same in any order and any cut, another for anything lost, doubled or changed."""

import random

import numpy as np
import pytest

from tests.unit.frames import random_frames, shuffled
from trainer.trace import checksum
from trainer.trace.store import StoreReader, StoreWriter


def test_the_store_and_the_rank_find_the_same_sum_whatever_the_cut(tmp_path):
    frames = shuffled(random.Random(1))
    said = {}
    writer = StoreWriter(tmp_path)
    for place, frame in enumerate(frames):
        said[frame.rank] = checksum.added(said.get(frame.rank, 0), checksum.total(frame.spans))
        frame.checksum = said[frame.rank]
        writer.add(frame, f"{place}-0")
        if place % 5 == 0:
            writer.seal()
            writer = StoreWriter(tmp_path)  # also over lives of the recorder
    writer.seal(complete=True)
    ranks = StoreReader(tmp_path).manifest.ranks
    assert {rank: totals.checksum for rank, totals in ranks.items()} == said
    assert all(totals.is_checked for totals in ranks.values())


def test_a_frame_that_never_came_is_told_by_the_sum(tmp_path):
    said, writer = 0, StoreWriter(tmp_path)
    for frame in random_frames(random.Random(2), 0, 5):
        said = checksum.added(said, checksum.total(frame.spans))
        frame.checksum = said
        if frame.sequence != 3:
            writer.add(frame, f"{frame.sequence}-0")
    writer.seal()
    assert not StoreReader(tmp_path).manifest.ranks[0].is_checked


@pytest.mark.parametrize("column", checksum.COLUMNS)
def test_any_number_that_changes_changes_the_sum(column):
    (frame,) = random_frames(random.Random(3), 0, 1)
    spans = {name: values.copy() for name, values in frame.spans.items()}
    assert checksum.total(spans) == checksum.total({name: values[::-1] for name, values in spans.items()})
    spans[column][0] += 1
    assert checksum.total(spans) != checksum.total(frame.spans)
    twice = {name: np.append(values, values[-1:]) for name, values in frame.spans.items()}
    assert checksum.total(twice) != checksum.total(frame.spans)
