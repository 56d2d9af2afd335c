"""Who looks at a run, over several processes, and who shows it to the others."""

import pytest

from dashboard.live.presence import SILENT_SECONDS, Lead, Presence, Visitor

ADA, BEN = Visitor("user-1", "ada", False), Visitor("user-2", "ben", False)
GUEST = Visitor("link-3", "the review", True)


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def two(clock):
    """Two processes; what one sends, hear it by the other."""
    return Presence(lambda: clock[0]), Presence(lambda: clock[0])


def names(presence):
    return [(one["name"], one["pages"]) for one in presence.people()]


def test_each_person_is_there_once_with_her_pages_and_guests_come_last(two):
    one, other = two
    one.set_own([BEN, GUEST, GUEST])
    other.set_own([ADA, BEN])
    one.hear(other.beat())
    assert names(one) == [("ada", 1), ("ben", 2), ("the review", 2)]


def test_ones_own_words_are_not_heard_twice(two):
    one, _ = two
    one.set_own([ADA])
    one.hear(one.beat())
    assert names(one) == [("ada", 1)]


def test_of_a_process_that_fell_silent_nobody_is_there(two, clock):
    one, other = two
    other.set_own([ADA])
    one.hear(other.beat())
    clock[0] = SILENT_SECONDS - 1
    assert names(one) == [("ada", 1)]
    clock[0] = SILENT_SECONDS
    assert names(one) == []


def test_who_leads_is_known_everywhere_until_she_leaves(two):
    one, other = two
    one.set_own([ADA, ADA])
    one.lead = Lead(ADA.key, ADA.name, "t=1,2")
    other.hear(one.lead_message())
    other.hear(one.beat())
    assert [person["leads"] for person in other.people()] == [True]
    assert one.leads_here() and not other.leads_here()
    one.set_own([ADA])  # one of her two pages is left
    assert one.lead is not None
    one.set_own([])
    other.hear(one.lead_message())
    assert one.lead is None and other.lead is None


def test_a_viewer_who_leaves_ends_no_lead_of_another_process(two):
    one, _ = two
    one.lead = Lead(ADA.key, ADA.name, "")
    one.set_own([BEN])
    one.set_own([])
    assert one.lead is not None
