"""What a rank can be doing: kinds of spans, and the lane each is drawn in.

The numbers are part of the frame's layout: never reuse one.
"""

from enum import IntEnum


class Lane(IntEnum):
    """Spans of one lane of one rank never overlap."""

    COMPUTE = 0
    COLLECTIVE = 1
    POINT_TO_POINT = 2
    HOST = 3


class Kind(IntEnum):
    FORWARD = 1
    BACKWARD = 2  # gradients of inputs and weights together
    BACKWARD_INPUT = 3
    BACKWARD_WEIGHT = 4
    OPTIMIZER = 5
    WAIT = 6  # compute is blocked: the sender has not sent yet
    SEND = 7
    RECEIVE = 8  # from the sender's send, or from asking if that was later, to the data's arrival
    ALL_REDUCE = 9
    ALL_GATHER = 10
    REDUCE_SCATTER = 11
    ALL_TO_ALL = 12
    BROADCAST = 13
    REDUCE = 14
    GATHER = 15
    SCATTER = 16
    BARRIER = 17
    DATA = 18  # loading the step's samples
    STEP = 19  # one step of one rank, from its first sample to the optimizer's end


LANE_OF = {
    Kind.FORWARD: Lane.COMPUTE,
    Kind.BACKWARD: Lane.COMPUTE,
    Kind.BACKWARD_INPUT: Lane.COMPUTE,
    Kind.BACKWARD_WEIGHT: Lane.COMPUTE,
    Kind.OPTIMIZER: Lane.COMPUTE,
    Kind.WAIT: Lane.COMPUTE,
    Kind.SEND: Lane.POINT_TO_POINT,
    Kind.RECEIVE: Lane.POINT_TO_POINT,
    Kind.ALL_REDUCE: Lane.COLLECTIVE,
    Kind.ALL_GATHER: Lane.COLLECTIVE,
    Kind.REDUCE_SCATTER: Lane.COLLECTIVE,
    Kind.ALL_TO_ALL: Lane.COLLECTIVE,
    Kind.BROADCAST: Lane.COLLECTIVE,
    Kind.REDUCE: Lane.COLLECTIVE,
    Kind.GATHER: Lane.COLLECTIVE,
    Kind.SCATTER: Lane.COLLECTIVE,
    Kind.BARRIER: Lane.COLLECTIVE,
    Kind.DATA: Lane.HOST,
    Kind.STEP: Lane.HOST,
}

# The work a device exists for. Everything else in the compute lane between a step's first and
# last of these is idle; the optimizer comes after the pipeline has drained and is not counted.
MODEL_WORK = (Kind.FORWARD, Kind.BACKWARD, Kind.BACKWARD_INPUT, Kind.BACKWARD_WEIGHT)
