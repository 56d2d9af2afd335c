"""Ranks find their offset to rank 0's clock, and keep the best they found."""

import os
import socket
import threading
import time

import pytest

from trainer.trace import clock
from trainer.trace.clock import DRIFT_NS_PER_SECOND, ClockKeeper, ClockServer, measure


@pytest.fixture
def server():
    server = ClockServer()
    yield server
    server.close()


def test_one_clock_measured_against_itself_is_out_by_no_more_than_its_uncertainty(server):
    offset_ns, uncertainty_ns = measure(server.address)
    assert abs(offset_ns) <= uncertainty_ns
    assert 0 < uncertainty_ns < 50_000_000


def test_an_offset_between_clocks_is_found(server, monkeypatch):
    behind_ns = 3_600_000_000_000
    here = threading.get_ident()
    real = time.monotonic_ns

    class Time:  # this thread's clock lags, the server's does not
        monotonic = time.monotonic

        @staticmethod
        def monotonic_ns():
            return real() - (behind_ns if threading.get_ident() == here else 0)

    monkeypatch.setattr(clock, "time", Time)
    offset_ns, uncertainty_ns = measure(server.address)
    assert abs(offset_ns - behind_ns) <= uncertainty_ns


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
    assert measure(server.address)[1] > 0


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
        offset_ns, uncertainty_ns = measure(server.getsockname(), rounds=1)
        thread.join()
    assert abs(offset_ns) <= uncertainty_ns


def test_a_worse_measurement_changes_nothing_until_the_old_one_has_aged(server, monkeypatch):
    applied = []
    keeper = ClockKeeper(server.address, lambda *found: applied.append(found), first=(0.0, 1_000.0), every_seconds=3600)
    assert not keeper.consider(5.0, 2_000_000.0)
    assert keeper.consider(7.0, 900.0)
    now = time.monotonic()
    monkeypatch.setattr(clock.time, "monotonic", lambda: now + 1)
    assert not keeper.consider(8.0, 900.0 + 1.5 * DRIFT_NS_PER_SECOND)
    assert keeper.consider(9.0, 900.0 + 0.9 * DRIFT_NS_PER_SECOND)
    assert applied == [(7.0, 900.0), (9.0, 900.0 + 0.9 * DRIFT_NS_PER_SECOND)]
    keeper.close()


def test_the_keeper_measures_again_by_itself(server):
    measured = threading.Event()
    keeper = ClockKeeper(server.address, lambda *_: measured.set(), first=(0.0, 1e12), every_seconds=0.01)
    assert measured.wait(5)
    keeper.close()


def test_a_forked_child_can_close_what_its_parent_opened(server):
    keeper = ClockKeeper(server.address, lambda *_: None, first=(0.0, 1.0))
    child = os.fork()
    if child == 0:
        keeper.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    keeper.close()
