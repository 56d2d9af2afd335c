"""A moment is a moment, however often the line is measured anew; and what was off is caught up with."""

import random
from itertools import pairwise

import numpy as np
import pytest

from trainer.trace.clock_line import Line
from trainer.trace.steady_clock import AHEAD_NS, MOST_PIECES, SLEW, STEP_NS, SteadyClock

SECOND = 1_000_000_000
MONTH = 30 * 24 * 3600 * SECOND


def measured_anew(times=40, seed=5, most_off_ns=200_000):
    """A clock after each of so many lines, each a little off the one before, as measurements are."""
    dice = random.Random(seed)
    steady, now_ns = SteadyClock.of(Line(MONTH, 7 * SECOND, 30e-6)), MONTH
    yield now_ns, steady
    for _ in range(times):
        now_ns += dice.randrange(SECOND // 10, 30 * SECOND)
        offset_ns = 7 * SECOND + round(30e-6 * (now_ns - MONTH)) + dice.randrange(-most_off_ns, most_off_ns)
        steady = steady.towards(Line(now_ns, offset_ns, 30e-6 + dice.uniform(-5e-6, 5e-6)), now_ns)
        yield now_ns, steady


def test_what_was_recorded_before_a_new_line_stays_where_it_was():
    for (_, before), (now_ns, after) in pairwise(measured_anew()):
        times = np.random.default_rng(1).integers(MONTH - SECOND, now_ns + AHEAD_NS, 500)
        assert (before.all_to_other(times) == after.all_to_other(times)).all()


def test_time_never_turns_back_and_runs_at_about_its_pace():
    now_ns, steady = list(measured_anew())[-1]
    times = np.sort(np.random.default_rng(2).integers(MONTH, now_ns + 60 * SECOND, 100_000))
    apart = np.diff(steady.all_to_other(times)) - np.diff(times)
    assert (np.diff(steady.all_to_other(times)) >= 0).all()
    assert (np.abs(apart) <= 1.1 * SLEW * np.diff(times) + 1).all()


def test_what_the_line_corrects_is_caught_up_with_and_claimed_as_uncertain_meanwhile():
    before = SteadyClock.of(Line(MONTH, 0, 0.0, 1000.0))
    line = Line(MONTH + SECOND, 80_000, 50e-6, 900.0)
    after = before.towards(line, MONTH + SECOND)
    knot_ns = MONTH + SECOND + AHEAD_NS
    assert after.offset_at(knot_ns) == 0
    assert after.uncertainty_at(knot_ns) == pytest.approx(900 + line.offset_at(knot_ns), abs=1)
    caught_up_ns = knot_ns + round(line.offset_at(knot_ns) / SLEW)
    assert after.offset_at(caught_up_ns - SECOND // 100) < line.offset_at(caught_up_ns - SECOND // 100)
    for later_ns in (caught_up_ns, caught_up_ns + 100 * SECOND):
        assert after.offset_at(later_ns) == pytest.approx(line.offset_at(later_ns), abs=1)
        assert after.uncertainty_at(later_ns) == pytest.approx(900, abs=1)


@pytest.mark.parametrize("jump_ns", [2 * SECOND, -2 * SECOND])
def test_a_jump_is_followed_at_once(jump_ns):
    assert abs(jump_ns) > STEP_NS
    after = SteadyClock.of(Line(MONTH)).towards(Line(MONTH, jump_ns), MONTH)
    assert (after.offset_at(MONTH + AHEAD_NS - 1), after.offset_at(MONTH + AHEAD_NS)) == (0, jump_ns)


def test_a_line_that_comes_while_the_last_one_is_still_caught_up_with_takes_its_place():
    steady = SteadyClock.of(Line(MONTH)).towards(Line(MONTH, 5_000_000), MONTH)  # five seconds to go
    newer = steady.towards(Line(MONTH + SECOND, 4_000_000), MONTH + SECOND)
    assert list(newer.starts) == sorted(newer.starts)
    assert newer.offset_at(MONTH + 10 * SECOND) == 4_000_000


def test_there_and_back_is_the_same_nanosecond():
    now_ns, steady = list(measured_anew())[-1]
    dice = random.Random(3)
    for _ in range(2000):
        local_ns = dice.randrange(MONTH, now_ns + 60 * SECOND)
        assert abs(steady.to_local(steady.to_other(local_ns)) - local_ns) <= 1
        assert steady.all_to_other(np.array([local_ns]))[0] == steady.to_other(local_ns)


def test_pieces_are_forgotten_and_the_newest_kept():
    now_ns, steady = list(measured_anew(times=3 * MOST_PIECES))[-1]
    assert len(steady.starts) == MOST_PIECES and steady.starts[-1] > now_ns
