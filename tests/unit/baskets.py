"""A sink in memory, and the rows and frames that tests of the writer and its spill file send to it."""

import threading

from tests.unit.frames import frame_of
from trainer.trace.frame import decode, encode
from trainer.trace.kinds import Kind
from trainer.trace.sinks import SinkAway

ZERO_NS = 1_000_000


class Basket:
    """A sink in memory that can be away, or take a frame and say that it did not."""

    def __init__(self):
        self.frames, self.is_away, self.is_unsure = [], False, False
        self.took = threading.Event()

    def send(self, frame):
        if self.is_away:
            raise SinkAway("away")
        self.frames.append(decode(frame))
        self.took.set()
        if self.is_unsure:
            self.is_unsure = False
            raise SinkAway("nobody knows")

    @property
    def numbers(self):
        return [frame.sequence for frame in self.frames]

    @property
    def steps(self):
        return [step for frame in self.frames for step in frame.spans["step"].tolist()]


def bytes_of(sequence):
    return encode(frame_of(0, sequence, [row(sequence)], before=sequence - 1))


def row(step, kind=Kind.FORWARD, start_ns=ZERO_NS):
    return (kind, start_ns, start_ns + 10, step, 0, 0, -1, -1, -1, f"F{step % 7}", "")
