"""What goes over a modelled link takes as long as α and β say, alone and with others at its port."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from tests.ranks.launch import Ran, run
from tests.ranks.probed import Probed
from tests.ranks.unsplit import assert_equals_one_process
from trainer.collectives.cost import ALL_REDUCE_SECONDS
from trainer.emulate.link_classes import CLASSES, LinkClass
from trainer.emulate.links import links_of
from trainer.emulate.moment import Moment
from trainer.job import Control, RankJob
from trainer.spec import JobSpec, parse
from trainer.trace.kinds import Kind

pytestmark = [pytest.mark.ranks, pytest.mark.timed]

OWN = dict.fromkeys(("all_reduce", "all_gather", "reduce_scatter", "all_to_all"), "ring")
ELEMENTS, REPEATS = 4096, 3
CLOCKS_AGREE_NS = 200e3


def spec_of(ranks: int, placement: dict[str, Any], slow_down: float, size_factor: float) -> JobSpec:
    return parse({"model": {"name": "perceptron"}, "grid": {"dp": ranks}, "batch": 8 * ranks, "collectives": OWN,
                  "links": {"kind": "modelled", "slow_down": slow_down, "size_factor": size_factor}, "placement": placement})


# 100 MB in four chunks over NVLink at a thousandth of its speed: a ring's step is 5 ms of latency and 28 ms on the way.
ALONE = spec_of(4, {}, 1000.0, 100e6 / (4 * ELEMENTS))
# Two servers of two ranks each and one port a server: half of 2 MB over InfiniBand at a thousandth of its speed is 20 ms.
SHARED = spec_of(4, {"gpus_per_server": 2}, 1000.0, 2e6 / (4 * ELEMENTS))


def scaled(spec: JobSpec, key: str) -> LinkClass:
    link = CLASSES[key]
    return LinkClass(link.word, link.latency_seconds * spec.links.slow_down, link.bytes_per_second / spec.links.slow_down)


def begin(job: RankJob) -> Probed:
    """With the real-time class where it may be had, as paced ranks ask for."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        print("no real-time class")
    spec = parse(job.spec_json)
    return Probed(job, links_of(spec, job.rank, job.folder, Moment()))


def timed(group: dist.ProcessGroup | None) -> float:
    """Seconds of the slowest rank from all ranks' start, the median of some."""
    durations = []
    for _ in range(REPEATS):
        dist.barrier()
        began = time.monotonic()
        dist.all_reduce(torch.ones(ELEMENTS), group=group)
        took = torch.tensor([time.monotonic() - began], dtype=torch.float64)
        of_all = [torch.empty_like(took) for _ in range(dist.get_world_size())]
        dist.all_gather(of_all, took)
        durations.append(max(part.item() for part in of_all))
    return statistics.median(durations)


def alone(job: RankJob, control: Control) -> int:
    probed = begin(job)
    spec = parse(job.spec_json)
    probed.choices |= {"all_gather": "backend", "barrier": "backend"}  # the measuring is not to be slowed
    for algorithm in ("ring", "tree", "halving-doubling"):
        probed.choices["all_reduce"] = algorithm
        expected = ALL_REDUCE_SECONDS[algorithm](4, 100e6, scaled(spec, "nvlink-4"))
        found = timed(None)
        if job.rank == 0:
            print(f"{algorithm}: measured {found:.4f} s, formula {expected:.4f} s, {found / expected - 1:+.2%}", flush=True)
        assert found == pytest.approx(expected, rel=0.03), algorithm
    assert probed.probe.settle()
    assert all(row[9].endswith(" · emulated NVLink 4") for row in probed.steps)
    return 0


def shared(job: RankJob, control: Control) -> int:
    """Ranks 0 and 2 exchange, and ranks 1 and 3: alone at their servers' ports, then both at once."""
    probed = begin(job)
    spec = parse(job.spec_json)
    groups = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    mine = groups[job.rank % 2]
    probed.choices |= {"all_gather": "backend", "barrier": "backend", "all_reduce": "ring"}
    link = scaled(spec, "infiniband-ndr")
    at_once = timed(mine)
    # Two steps of half the array, each behind the other group's at the same port, which is never free in between.
    expected = link.latency_seconds + 4 * 1e6 / link.bytes_per_second
    if job.rank == 0:
        print(f"shared: measured {at_once:.4f} s, sum {expected:.4f} s, {at_once / expected - 1:+.2%}", flush=True)
    assert at_once == pytest.approx(expected, rel=0.03)
    return 0


def _check(ran: Ran) -> None:
    if any("no real-time class" in text for text in ran.logs):
        pytest.skip("without the real-time class a wake-up can be late")
    if ran.stolen > 0.02 and ran.codes != [0] * len(ran.codes):
        pytest.skip(f"{ran.stolen:.0%} of this machine's time went to others")
    ran.check()


@pytest.mark.parametrize(("script", "spec"), [(alone, ALONE), (shared, SHARED)], ids=["alone", "shared"])
def test_emulated_time(script: Any, spec: JobSpec, tmp_path: Path) -> None:
    _check(run(spec, tmp_path, main=script))


def test_a_whole_job_over_modelled_links(tmp_path: Path) -> None:
    spec = parse({"model": {"name": "perceptron"}, "grid": {"dp": 4}, "batch": 32, "steps": 2, "collectives": OWN,
                  "schedule": {"name": "gpipe", "micro_batches": 1}, "pace": {"kind": "paced", "forward_ms": 5, "backward_ms": 5},
                  "links": {"kind": "modelled", "slow_down": 1000}, "placement": {"gpus_per_server": 2}})
    ran = run(spec, tmp_path).check()
    ran.assert_lanes_are_in_order()
    assert {text.split(";")[0] for _, kind, text in ran.marks if kind == "links"} == {"modelled, 1000 times slower"}
    words = {span.name.rpartition(" · ")[2] for span in ran.of(Kind.SEND, Kind.RECEIVE)}
    assert words == {"emulated NVLink 4", "emulated InfiniBand NDR"}


def test_stages_and_a_ring_of_parts_over_modelled_links(tmp_path: Path) -> None:
    """Their own messages are slowed as collectives are, and change nothing in what is learned."""
    spec = parse({"model": {"name": "gpt", "layers": 2, "width": 16, "heads": 2, "context": 8}, "grid": {"pp": 2, "cp": 2},
                  "batch": 8, "steps": 2, "precision": "float64", "collectives": OWN, "schedule": {"micro_batches": 2},
                  "links": {"kind": "modelled", "slow_down": 2000}, "placement": {"gpus_per_server": 2}})
    ran = run(spec, tmp_path).check()
    assert_equals_one_process(ran)
    ran.assert_lanes_are_in_order()
    for group, key in (("pp", "infiniband-ndr"), ("cp", "nvlink-4")):
        received = [span for span in ran.of(Kind.RECEIVE) if span.group == group]
        assert received and all(span.name.endswith(f" · emulated {CLASSES[key].word}") for span in received)
    sent_ns = {(s.rank, s.peer, s.step, s.name): s.start_ns for s in ran.of(Kind.SEND) if s.group == "pp"}
    for span in ran.of(Kind.RECEIVE):
        if span.group == "pp":
            way_ns = span.end_ns - sent_ns.pop((span.peer, span.rank, span.step, span.name))
            assert way_ns >= scaled(spec, "infiniband-ndr").latency_seconds * 1e9 - CLOCKS_AGREE_NS
    assert not sent_ns
