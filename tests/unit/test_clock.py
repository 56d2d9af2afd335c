"""Ranks measure their clock against rank 0's, by real exchanges between clocks that tests choose."""

import os
import socket
import threading
import time

import pytest

from trainer.trace import clock
from trainer.trace.clock import ClockKeeper, ClockServer, measure
from trainer.trace.clock_line import Sample


@pytest.fixture
def server():
    server = ClockServer()
    yield server
    server.close()


def test_one_clock_measured_against_itself_is_out_by_no_more_than_its_uncertainty(server):
    sample = measure(server.address)
    assert abs(sample.offset_ns) <= sample.uncertainty_ns
    assert 0 < sample.uncertainty_ns < 50_000_000
    assert sample.local_ns < time.monotonic_ns()


def test_an_offset_between_clocks_is_found(server):
    behind_ns = 3_600_000_000_000
    sample = measure(server.address, clock=lambda: time.monotonic_ns() - behind_ns)
    assert abs(sample.offset_ns - behind_ns) <= sample.uncertainty_ns


def test_a_clock_that_does_not_answer_is_given_up_soon():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        began = time.monotonic()
        with pytest.raises(TimeoutError, match="does not answer"):
            measure(silent.getsockname(), rounds=20, timeout_seconds=0.05)
        assert time.monotonic() - began < 1


def test_the_server_goes_on_after_nonsense(server):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.sendto(b"what time is it?", server.address)
        stranger.sendto(b"", server.address)
    assert measure(server.address).uncertainty_ns > 0


def test_an_answer_to_an_older_question_is_passed_over():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def answer():
            asked, asker = server.recvfrom(64)
            number = int.from_bytes(asked, "little")
            server.sendto(clock._ANSWER.pack((number + 1) % 2**64, 0), asker)
            server.sendto(clock._ANSWER.pack(number, time.monotonic_ns()), asker)

        thread = threading.Thread(target=answer)
        thread.start()
        sample = measure(server.getsockname(), rounds=1)
        thread.join()
    assert abs(sample.offset_ns) <= sample.uncertainty_ns


class Host:
    """A clock of another machine: `apart_ns` more than this one's, and faster by `drift`."""

    def __init__(self, apart_ns=0, drift=0.0):
        self.apart_ns, self.drift, self.began_ns = apart_ns, drift, time.monotonic_ns()

    def shows(self, here_ns):
        return here_ns + self.apart_ns + round(self.drift * (here_ns - self.began_ns))

    def __call__(self):
        return self.shows(time.monotonic_ns())


def test_a_host_that_differs_by_seconds_and_drifts_is_measured_again_and_again_and_put_right():
    other, lines, enough = Host(3_700_000_000, 90e-6), [], threading.Event()
    server = ClockServer(clock=other)

    def apply(line):
        lines.append(line)
        if len(lines) == 12:
            enough.set()

    keeper = ClockKeeper(server.address, apply, measure(server.address), pauses_seconds=(0.1, 0.3))
    assert enough.wait(30)
    now_ns = time.monotonic_ns()
    line = lines[11]
    keeper.close()
    server.close()
    assert abs(now_ns + line.offset_at(now_ns) - other.shows(now_ns)) <= line.uncertainty_at(now_ns)
    assert abs(line.drift - 90e-6) <= line.drift_uncertainty


def test_a_jump_is_told_with_what_was_measured_before_and_after():
    other, told, seen, measured = Host(), [], threading.Event(), threading.Event()
    server = ClockServer(clock=other)

    def tell(before, after):
        told.append((before, after))
        seen.set()

    keeper = ClockKeeper(server.address, lambda line: measured.set(), measure(server.address), tell, pauses_seconds=(0.01, 0.01))
    assert measured.wait(5)
    other.apart_ns = 2_000_000_000
    assert seen.wait(30)
    keeper.close()
    server.close()
    (before, after), = told
    assert after.offset_ns - before.offset_ns == pytest.approx(2e9, abs=5e7)


def test_the_first_line_is_applied_at_once_and_the_keeper_measures_again_by_itself(server):
    lines, again = [], threading.Event()

    def apply(line):
        lines.append(line)
        if len(lines) > 1:
            again.set()

    first = Sample(time.monotonic_ns(), 0, 1e9)
    keeper = ClockKeeper(server.address, apply, first, pauses_seconds=(0.01, 0.01))
    assert lines[0].uncertainty_ns == 1e9
    assert again.wait(5)
    keeper.close()


def test_a_forked_child_can_close_what_its_parent_opened(server):
    keeper = ClockKeeper(server.address, lambda line: None, measure(server.address))
    child = os.fork()
    if child == 0:
        keeper.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    keeper.close()
