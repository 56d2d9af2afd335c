"""Spans of one lane that several threads record do not overlap."""

from __future__ import annotations

from itertools import pairwise

from trainer.trace.in_order import InOrder
from trainer.trace.kinds import Kind, Lane
from trainer.trace.row import Row, Rows


def row(kind: Kind, start_ns: int, end_ns: int) -> Row:
    return (kind, start_ns, end_ns, 0, 0, 0, 0, 0, 0, "", "")


def test_a_span_starts_no_earlier_than_the_one_before_it_ended() -> None:
    rows = Rows()
    add = InOrder(rows.add, Lane.POINT_TO_POINT)
    for start_ns, end_ns in ((0, 10), (5, 20), (2, 15), (30, 40)):
        add(*row(Kind.SEND, start_ns, end_ns))
    assert [(found[1], found[2]) for found in rows] == [(0, 10), (10, 20), (20, 20), (30, 40)]
    assert all(before[2] <= after[1] for before, after in pairwise(rows))


def test_other_lanes_are_left_alone() -> None:
    rows = Rows()
    add = InOrder(rows.add, Lane.POINT_TO_POINT)
    given = [row(Kind.SEND, 0, 10), row(Kind.FORWARD, 5, 8), row(Kind.ALL_REDUCE, 0, 9)]
    for one in given:
        add(*one)
    assert rows == given
