"""A line through measurements of two clocks: right within what it claims, whatever the ways between them and the clocks do."""

import random
from itertools import pairwise

import pytest

from trainer.trace.clock import KEPT_SAMPLES, ClockLine
from trainer.trace.clock_line import MOST_DRIFT, Sample, fitted

SECOND = 1_000_000_000
MONTH = 30 * 24 * 3600 * SECOND


class TwoHosts:
    """The other clock shows `apart_ns` more, and runs faster by the drift of the moment."""

    def __init__(self, drift, apart_ns=0, seed=1):
        self.drift, self.apart_ns, self.dice = drift, apart_ns, random.Random(seed)

    def offset_ns(self, local_ns):
        return self.apart_ns + round(self.drift * (local_ns - MONTH))

    def exchange(self, local_ns):
        """Both ways take 10 µs and an accident, each another one."""
        there_ns, back_ns = (10_000 + self.dice.expovariate(1 / 40_000) for _ in range(2))
        seen = self.offset_ns(local_ns) + round((there_ns - back_ns) / 2)
        return Sample(local_ns, seen, (there_ns + back_ns) / 2 + 1)

    def measure(self, seconds, rounds=8):
        at_ns = MONTH + round(seconds * SECOND)
        return min((self.exchange(at_ns) for _ in range(rounds)), key=lambda sample: sample.uncertainty_ns)


def assert_right(line, hosts, seconds):
    at_ns = MONTH + round(seconds * SECOND)
    off_ns = abs(line.offset_at(at_ns) - hosts.offset_ns(at_ns))
    assert off_ns <= line.uncertainty_at(at_ns) + 1, f"{off_ns} ns at {seconds} s"


@pytest.mark.parametrize("drift", [0.0, 37e-6, -60e-6, 95e-6, -95e-6])
@pytest.mark.parametrize("apart_seconds", [0, 3.7, -86_400 * 365])
def test_hosts_that_differ_by_seconds_and_drift_are_put_right_within_what_is_claimed(drift, apart_seconds):
    hosts = TwoHosts(drift, round(apart_seconds * SECOND), seed=round(drift * 1e6))
    lines = ClockLine(hosts.measure(0, rounds=20))
    times = [0.25, 0.75, 1.75, 3.75, 7.75, 15.75, *range(30, 900, 30)]
    for now, then in pairwise(times):
        assert_right(lines.line, hosts, now)  # just before it is measured again
        assert lines.take(hosts.measure(now))
        for seconds in (now, (now + then) / 2, then):
            assert_right(lines.line, hosts, seconds)
    assert lines.jump is None
    assert abs(lines.line.drift - drift) <= lines.line.drift_uncertainty < 1.1e-6
    assert lines.line.uncertainty_ns < 40_000


def test_one_measurement_says_nothing_of_the_drift_and_admits_it():
    line = fitted([Sample(MONTH, 5, 100.0)])
    assert (line.drift, line.drift_uncertainty) == (0.0, MOST_DRIFT)
    assert line.uncertainty_at(MONTH + SECOND) == pytest.approx(100 + MOST_DRIFT * SECOND)


def test_the_uncertainty_falls_with_every_measurement_at_first():
    hosts = TwoHosts(50e-6)
    lines, claimed = ClockLine(hosts.measure(0)), []
    for seconds in (1, 4, 16, 64):
        lines.take(hosts.measure(seconds))
        claimed.append(lines.line.uncertainty_at(MONTH + round((seconds + 30) * SECOND)))
    assert claimed == sorted(claimed, reverse=True) and claimed[-1] < claimed[0] / 5


def test_of_many_measurements_a_few_wrong_ones_leave_no_trace():
    hosts = TwoHosts(40e-6, 2 * SECOND)
    samples = [hosts.measure(30 * number) for number in range(16)]
    for number in (2, 7, 11):  # they claim to be the best of all
        samples[number] = Sample(samples[number].local_ns, samples[number].offset_ns + 9_000_000, 500.0)
    line = fitted(samples)
    assert abs(line.drift - 40e-6) < 1e-6
    at_ns = samples[-1].local_ns
    assert abs(line.offset_at(at_ns) - hosts.offset_ns(at_ns)) < 60_000


def test_a_drift_that_follows_the_temperature_is_followed():
    class Warming(TwoHosts):
        def offset_ns(self, local_ns):
            seconds = (local_ns - MONTH) / SECOND
            return round(20_000 * seconds + 10_000 / 3600 * seconds**2 / 2)  # from 20 to 30 ppm in an hour

    hosts = Warming(0)
    lines = ClockLine(hosts.measure(0))
    for seconds in range(30, 3600, 30):
        lines.take(hosts.measure(seconds))
        assert_right(lines.line, hosts, seconds)
        assert lines.line.uncertainty_ns < 300_000
    assert lines.line.drift == pytest.approx(30e-6, abs=2e-6) and lines.jump is None


@pytest.mark.parametrize("jump_ns", [3 * SECOND, -50_000_000, 3600 * SECOND])
def test_a_clock_that_jumps_is_noticed_once_a_second_measurement_says_so(jump_ns):
    hosts = TwoHosts(40e-6)
    lines = ClockLine(hosts.measure(0))
    for seconds in range(30, 300, 30):
        lines.take(hosts.measure(seconds))
    before = lines.line
    hosts.apart_ns += jump_ns
    assert not lines.take(hosts.measure(300)) and lines.line == before and lines.jump is None
    assert lines.take(hosts.measure(300.01))
    last, first = lines.jump
    assert (last.local_ns - MONTH, first.local_ns - MONTH) == (270 * SECOND, 300 * SECOND)
    assert first.offset_ns - last.offset_ns == pytest.approx(jump_ns, abs=2_000_000)
    for seconds in range(330, 600, 30):
        assert lines.take(hosts.measure(seconds))
        assert_right(lines.line, hosts, seconds)
    assert lines.line.drift == pytest.approx(40e-6, abs=1e-6)


def test_one_odd_measurement_is_no_jump():
    hosts = TwoHosts(40e-6)
    lines = ClockLine(hosts.measure(0))
    lines.take(hosts.measure(30))
    assert not lines.take(Sample(MONTH + 60 * SECOND, 7 * SECOND, 10_000.0))
    assert lines.take(hosts.measure(60.01)) and lines.jump is None
    assert_right(lines.line, hosts, 90)


def test_old_measurements_are_forgotten():
    hosts = TwoHosts(0)
    lines = ClockLine(hosts.measure(0))
    for number in range(1, 3 * KEPT_SAMPLES):
        lines.take(hosts.measure(30 * number))
    assert len(lines._samples) == KEPT_SAMPLES
