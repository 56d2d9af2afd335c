"""The script for a CUDA machine, as far as it can be tried without one; and what it tries, on stand-ins for a card."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.gpu import checks
from trainer import rendezvous
from trainer.probes import stopwatch
from trainer.spec import GridSpec, JobSpec
from trainer.splits.messages import road_of

SCRIPT = Path(__file__).parents[1] / "gpu" / "check.sh"


def test_without_a_card_the_script_says_so_and_checks_nothing():
    if torch.cuda.is_available():
        pytest.skip("there is a card")
    done = subprocess.run([SCRIPT], capture_output=True, text=True, env=os.environ | {"PYTHON": sys.executable}, timeout=120)
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.startswith("There is no card")


def test_its_head_names_every_check():
    head = SCRIPT.read_text().partition("set -uo")[0]
    assert [line.split()[1] for line in head.splitlines() if line.startswith("#   ")] == list(checks.CHECKS)


def test_a_check_that_fails_is_named_and_decides(monkeypatch, capsys):
    def fails():
        raise AssertionError("not so")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(checks, "CHECKS", {"good": lambda: "seen", "bad": fails})
    assert checks.main() == 1
    out = capsys.readouterr().out
    assert "ok   good      seen" in out and "FAIL bad       AssertionError: not so" in out
    assert out.endswith("1 of 2 checks passed; not bad\n")


@pytest.mark.parametrize("device, ranks, cards, backend", [
    ("cpu", 2, 4, "gloo"), ("cuda", 1, 1, "nccl"), ("cuda", 4, 4, "nccl"), ("cuda", 4, 1, "gloo"),
])
def test_ranks_that_share_a_card_talk_over_gloo(monkeypatch, device, ranks, cards, backend):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
    assert rendezvous.backend_of(JobSpec(grid=GridSpec(dp=ranks), device=device)) == backend


@pytest.mark.parametrize("backend, place", [("gloo", "cpu"), ("nccl", "cuda")])
def test_gloo_carries_messages_through_the_hosts_memory(monkeypatch, backend, place):
    monkeypatch.setattr(torch.distributed, "get_backend", lambda group: backend)
    assert road_of({"F": None}, torch.device("cuda", 0)).type == place


class Event:
    """Of a device that takes 3 ms for whatever lies between two events."""

    def __init__(self, **options):
        assert options["enable_timing"]

    def record(self):
        pass

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return 3.0


def test_a_stopwatch_takes_the_devices_time_and_none_on_a_cpu(monkeypatch):
    assert stopwatch.Stopwatch(torch.device("cpu")).times(5, 9) == (5, 9)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(stopwatch, "time", SimpleNamespace(monotonic_ns=lambda: 10_000_000))
    watch = stopwatch.Stopwatch(torch.device("cuda"))
    watch.start()
    assert watch.times(1_000_000, 2_000_000) == (7_000_000, 10_000_000)
    watch.start()
    assert watch.times(8_000_000, 8_100_000) == (8_000_000, 10_000_000), "not before the host asked for it"
