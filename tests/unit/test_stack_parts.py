"""Pieces of the embedded stack that need no stack."""

import signal
import socket
import sys
import time

import pytest

from dashboard.stack import files, ports, valkey
from dashboard.stack.child import Child, Part, ended_how
from dashboard.stack.files import Stack


def test_a_port_in_use_is_named_with_what_would_do():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ports.PortRefused, match=f"Port {port} on 127.0.0.1 is in use.*--port {port + 1}"):
            ports.listen("127.0.0.1", port)


@pytest.mark.parametrize(
    ("host", "port", "words"), [("no.such.host.invalid", 0, "no address of this machine"), ("127.0.0.1", 70000, "65535")]
)
def test_an_address_that_cannot_be_is_refused_in_words(host, port, words):
    with pytest.raises(ports.PortRefused, match=words):
        ports.listen(host, port)


def test_the_address_is_one_a_browser_here_can_open():
    assert ports.url_of("0.0.0.0", 80) == "http://127.0.0.1:80"
    assert ports.url_of("::", 80) == "http://[::1]:80"
    assert ports.url_of("10.0.0.7", 80) == "http://10.0.0.7:80"


def test_a_home_folder_holds_one_stack_and_forgets_it_when_its_lock_is_gone(tmp_path):
    stack = Stack(1, "http://127.0.0.1:1", 0.0)
    assert files.running(tmp_path) is None
    with files.hold(tmp_path):
        files.publish(tmp_path, stack)
        assert files.running(tmp_path) == stack
        with pytest.raises(files.AlreadyUp, match=r"http://127\.0\.0\.1:1"):
            files.hold(tmp_path)
    assert files.running(tmp_path) is None  # as after a kill: the file is there, the lock is not
    files.hold(tmp_path).close()


def test_secrets_of_the_stack_are_for_its_owner_alone(tmp_path):
    setup = valkey.prepare(tmp_path)
    config = tmp_path / "valkey" / "valkey.conf"
    assert config.stat().st_mode & 0o777 == 0o600
    assert "requirepass" in config.read_text() and f":{setup.port}/" in setup.url


def child(tmp_path, code, stop_seconds=5.0):
    return Child(Part("part", [sys.executable, "-c", code], stop_seconds), tmp_path / "part.log", {})


def test_a_part_that_ends_is_started_again_after_growing_pauses(tmp_path):
    part = child(tmp_path, "raise SystemExit(3)")
    pauses = []
    part.start()
    for _ in range(2):
        part.process.wait(10)
        words = part.care()
        assert words.startswith("ended with exit code 3; it starts again in")
        pauses.append(part.start_again_at - time.monotonic())
        assert part.care() is None  # its pause is not over
        part.start_again_at = 0.0
        assert part.care() is None and part.start_again_at is None
    part.stop()
    assert pauses[1] > pauses[0] > 0


def test_a_part_that_does_not_heed_is_killed(tmp_path):
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"
    part = child(tmp_path, deaf, stop_seconds=0.2)
    part.start()
    process = part.process
    while not part.log.read_text():
        time.sleep(0.02)
    part.stop()
    assert process.returncode == -signal.SIGKILL


def test_an_end_is_told_in_words():
    assert ended_how(2) == "ended with exit code 2"
    assert ended_how(-9) == "was killed by SIGKILL"
