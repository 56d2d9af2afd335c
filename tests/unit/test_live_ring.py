"""The ring: the latest entries, in bounded memory."""

from dashboard.live.ring import Entry, Ring, head_of
from trainer.trace.stream import FRAME


def entry(id, size=10):
    return Entry((id, 0), FRAME, b"x" * size)


def ids(entries):
    return [entry.id[0] for entry in entries]


def test_it_answers_what_follows():
    ring = Ring(1000, (0, 0))
    ring.extend([entry(1), entry(2), entry(3)])
    assert ids(ring.after((0, 0), 1000)) == [1, 2, 3]
    assert ids(ring.after((2, 0), 1000)) == [3]
    assert ring.after((3, 0), 1000) == []


def test_it_holds_no_more_than_its_bytes_and_says_what_it_forgot():
    ring = Ring(100, (0, 0))
    for id in range(1, 200):
        ring.extend([entry(id)])
        assert ring.bytes <= 100
    held = ring.after(ring.floor, 1000)
    assert ids(held) == list(range(ring.floor[0] + 1, 200)) and len(held) >= 8
    assert ring.after((ring.floor[0] - 1, 0), 1000) is None


def test_one_entry_larger_than_the_ring_is_forgotten_at_once():
    ring = Ring(100, (0, 0))
    ring.extend([entry(1, 500)])
    assert ring.bytes == 0 and ring.after((0, 0), 1000) is None and ring.last == (1, 0)


def test_after_a_restart_it_knows_nothing_older():
    ring = Ring(1000, (0, 0))
    ring.extend([entry(1), entry(2)])
    ring.restart((7, 0))
    assert ring.after((2, 0), 1000) is None
    assert ring.after((7, 0), 1000) == [] and ring.last == (7, 0)


def test_a_batch_is_cut_by_bytes_but_is_never_empty():
    assert ids(head_of([entry(1), entry(2), entry(3)], 20)) == [1, 2]
    assert ids(head_of([entry(1, 500), entry(2)], 20)) == [1]
    assert head_of([], 20) == []
