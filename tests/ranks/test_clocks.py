"""Ranks on hosts whose clocks differ by seconds and drift: their collectives end together all the same, on the run's clock."""

import time
from functools import partial

import numpy as np
import pytest

import trainer.rank
from tests.ranks.launch import run
from trainer.grid import Grid
from trainer.spec import GridSpec, JobSpec, Pace, Perceptron, ScheduleSpec
from trainer.trace.analysis.collectives import matched
from trainer.trace.analysis.spans import Groups, joined, of_frames
from trainer.trace.frame import decode
from trainer.trace.sinks import read_frames

pytestmark = [pytest.mark.ranks, pytest.mark.timed]

# Of each rank: how much more its host's clock shows, in seconds, and by how much it is faster.
HOSTS = {0: (0.0, 0.0), 1: (3.7, 90e-6), 2: (-86_400.0, -70e-6)}
STEPS, JUMPS_AT_STEP = 60, 20
SPEC = JobSpec(model=Perceptron(), grid=GridSpec(dp=3), schedule=ScheduleSpec(name="gpipe", micro_batches=1), batch=48,
               pace=Pace(kind="paced", forward_ms=20, backward_ms=40), steps=STEPS)
# A rank notices a collective's end when it is given a core. Without the drift's fit ranks would be 600 µs apart by then.
NOTICING_NS = 200_000


def on_hosts(jump_ns, job, control):
    """`trainer.rank.main` in a process whose monotonic clock is that of another host. Rank 1's may jump in the middle."""
    apart_seconds, drift = HOSTS[job.rank]
    here, began_ns = time.monotonic_ns, time.monotonic_ns()

    def shows():
        now_ns = here()
        jumped_ns = jump_ns if job.rank == 1 and max(control.steps()) >= JUMPS_AT_STEP else 0
        return now_ns + round(apart_seconds * 1e9 + drift * (now_ns - began_ns)) + jumped_ns

    time.monotonic_ns = shows
    return trainer.rank.main(job, control)


def test_ends_of_collectives_agree_to_within_what_the_clocks_claim(tmp_path):
    ran = run(SPEC, tmp_path, main=partial(on_hosts, 0)).check()
    frames = frames_in(tmp_path)
    spans = joined([of_frames(frames, Groups(3, Grid.of(SPEC.grid)))])
    late = spans["step"] >= STEPS // 2
    spans = {name: column[late] for name, column in spans.items()}
    found = matched(spans)
    shared = found.members == 3
    rank, off_ns = spans["rank"][found.at][shared], found.end_off_ns[shared]
    residual_ns = {number: abs(np.median(off_ns[rank == number])) for number in range(3)}
    claimed_ns = {frame.rank: frame.clock_uncertainty_ns for frame in frames}
    assert claimed_ns[0] == 0 < min(claimed_ns[1], claimed_ns[2])
    assert max(residual_ns.values()) <= max(claimed_ns.values()) + NOTICING_NS, (residual_ns, claimed_ns)
    offsets = {frame.rank: frame.clock_offset_ns for frame in frames}
    assert offsets[1] == pytest.approx(-3.7e9, abs=2e6) and offsets[2] == pytest.approx(86_400e9, abs=2e6)
    assert not [text for _, kind, text in ran.marks if kind == "clock"]


def test_a_clock_that_jumps_in_the_middle_is_told_and_put_right(tmp_path):
    ran = run(SPEC, tmp_path, main=partial(on_hosts, 2_000_000_000)).check()
    told = [(rank, text) for rank, kind, text in ran.marks if kind == "clock"]
    assert [rank for rank, _ in told] == [1] and told[0][1].startswith("jumped by +2,000.")
    last = {span.rank: span.end_ns for span in ran.spans if span.step == STEPS - 1}
    assert max(last.values()) - min(last.values()) < 1e9


def frames_in(folder):
    return [decode(data) for rank in range(3) for data, _ in read_frames(folder / "frames" / f"rank-{rank}.frames")]
