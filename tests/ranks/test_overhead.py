"""The measure of what recording costs sees what it is to see. How little it is, `manage.py bench overhead` says."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import pytest
import torch

from trainer import overhead
from trainer.trace.sinks import FileSink, read_frames
from trainer.trace.writer import Writer

pytestmark = [pytest.mark.ranks, pytest.mark.timed]


@pytest.fixture(scope="module")
def loop() -> overhead.Loop:
    torch.set_num_threads(1)
    return overhead.Loop()


def burn(nanoseconds: int) -> None:
    end_ns = time.thread_time_ns() + nanoseconds
    while time.thread_time_ns() < end_ns:
        pass


def test_pairs_find_a_tenth_more_and_nothing_where_there_is_nothing() -> None:
    def bare() -> None:
        burn(1_000_000)

    same = median(overhead.compared(bare, lambda: overhead.cpu_ns(bare), 200))
    more = median(overhead.compared(bare, lambda: overhead.cpu_ns(lambda: burn(1_100_000)), 200))
    assert abs(same) < 0.03 and abs(more - 0.1) < 0.03


def test_a_recorded_step_leaves_its_spans_and_the_thread_behind_is_measured(loop: overhead.Loop, tmp_path: Path,
                                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overhead, "STRETCHES", 3)
    writer = Writer(0, FileSink(tmp_path / "frames"), tmp_path / "spill", flush_ms=20, zero_ns=1)
    alone, with_it = overhead.stretches(loop.bare, loop.recorded(writer), writer)
    assert with_it.behind > alone.behind >= 0
    writer.close()
    spans = sum(1 for _ in read_frames(tmp_path / "frames"))
    assert spans > 3, "several flushes"


def test_others_are_measured_in_the_same_loop(loop: overhead.Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overhead, "PAIRS", 200)
    monkeypatch.setattr(overhead, "PROFILED_PAIRS", 8)
    assert median(overhead.viztracer_in_loop(loop, tmp_path)) > 0
    assert median(overhead.torch_profiler_in_loop(loop)) > 0
