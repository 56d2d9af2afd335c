"""Four real writers without a training job: what they recorded is known exactly, and can be held against the store."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.stack.recorder_stack import RecorderStack, until
from tests.unit.frames import gpipe_rows, spans_of
from trainer.trace import checksum, segments
from trainer.trace.frame import decode
from trainer.trace.store import StoreReader
from trainer.trace.stream import LIVE_RUNS

RANKS, SPANS_A_STEP, MS = 4, 17, 1_000_000


class Ranks:
    """Four writers that record GPipe steps; what they recorded is known exactly."""

    def __init__(self, stack, run_id):
        self.writers = [stack.writer(run_id, rank) for rank in range(RANKS)]
        self.writers[0].mark("zero", "1780000000000000000", at_ns=0)
        for writer in self.writers:
            writer.mark("realtime", "granted")
        self.steps = 0

    def work(self, steps):
        for step in range(self.steps, self.steps + steps):
            for rank, writer in enumerate(self.writers):
                for row in gpipe_rows(rank, step, forward_ns=20 * MS, backward_ns=40 * MS):
                    writer.add(*row)
            self.writers[-1].counter("loss", 4.0 - step / 1000, step=step, at_ns=0)
        self.steps += steps

    def work_until(self, what, condition, steps=20):
        """Go on recording until something has come of it."""
        def look():
            self.work(steps)
            return condition()

        until(what, look)

    def close(self):
        for writer in self.writers:
            writer.close(20)

    @property
    def spans(self):
        return self.steps * RANKS * SPANS_A_STEP


def sums_in(reader: StoreReader) -> dict[int, int]:
    """Each rank's checksum, from the segments on disk."""
    found: Counter[int] = Counter()
    for segment in reader.segments:
        found.update(checksum.by_rank(segments.numbers(segments.read(reader.folder, segment))))
    return {rank: total % 2**64 for rank, total in found.items()}


def assert_whole(stack: RecorderStack, run_id: str, ranks: Ranks) -> dict[str, Any]:
    """The store holds what was recorded, each span once, and each step's figures once."""
    row, reader = stack.wait_until_sealed(run_id), stack.reader(run_id)
    assert reader.manifest.complete
    frames = [decode(data) for data in reader.frames(0, 10**9)[1]]
    spans = [span for frame in frames for span in spans_of(frame)]
    assert len(spans) == ranks.spans == reader.manifest.spans == row["figures"]["spans"]
    assert len(set(spans)) == len(spans)
    assert row["figures"]["dropped_spans"] == 0
    assert row["figures"]["checked_ranks"] == RANKS
    assert sums_in(reader) == {rank: totals.recorded_checksum for rank, totals in reader.manifest.ranks.items()}
    steps = reader.steps()
    assert [step["step"] for step in steps] == list(range(ranks.steps))
    assert all(step["complete"] for step in steps)
    assert {round(step["bubble_share"], 9) for step in steps} == {round(3 / 11, 9)}
    until("the run is off the list", lambda: not stack.client.sismember(LIVE_RUNS, run_id))
    return row
