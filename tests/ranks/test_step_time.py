"""The step time that the launch page shows is the paced run's, whatever its modelled links take."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.runs.plan import plan
from tests.ranks.explained import changed, measured
from tests.ranks.launch import MOST_STOLEN
from trainer.presets import preset

pytestmark = [pytest.mark.ranks, pytest.mark.timed]

STEP_TOLERANCE = 0.03
ATTEMPTS = 3  # what else runs on the machine makes a step longer, at one moment and not at the next
OWN = {f"collectives.{name}": "auto" for name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")}
# So that late wake-ups, and what Python takes for each collective, weigh little.
SLOW = {"pace.forward_ms": "40.0", "pace.backward_ms": "80.0", "steps": "4"}
SLOWER = {"pace.forward_ms": "80.0", "pace.backward_ms": "160.0"}
# 32 kB between stages count as 1.3 MB: at a thousandth of InfiniBand's speed 27 ms, each rank in a server of its own.
FAR = OWN | SLOW | {"links.kind": "modelled", "links.size_factor": "40", "placement.gpus_per_server": "1"}
SHARED = FAR | {"placement.gpus_per_server": "2"}  # two ranks at one port
MIRRORED = {"splits.data.mode": "zero-2", "links.slow_down": "1000", "links.size_factor": "100", "steps": "3"}
TWICE = {"links.slow_down": "2000"}
FARTHER = FAR | {"links.size_factor": "80", "steps": "2"}  # of steps that take seconds one is enough behind the first
EXPERTS = {"links.size_factor": "80"}
SERVED = {"splits.data.mode": "parameter-server"}
CARD = {"pace.kind": "device", "pace.device": "a100", "pace.slow_down": "8e4", "steps": "4"}

JOBS = {
    "a pipeline": ("pipeline-1f1b", SLOW), "unequal stages": ("pipeline-by-hand", SLOW), "a named card": ("pipeline-1f1b", CARD),
    "a ring": ("allreduce-ring", SLOW | TWICE), "a tree": ("allreduce-tree", {"steps": "4"}),
    "halves": ("allreduce-halving-doubling", SLOW | TWICE),
    "NVLink": ("links-nvlink", SLOW | {"links.slow_down": "4000"}),
    "slices across servers": ("tensor-across-servers", {"steps": "4", "links.size_factor": "180"}),
    "stages far apart": ("pipeline-1f1b", FAR), "stages and copies": ("pipeline-x-data", FAR),
    "stages and copies at one port": ("pipeline-x-data", SHARED), "slices of stages": ("tensor-x-pipeline", SHARED | SLOWER),
    "ZeRO-1": ("zero-1", FARTHER), "a ring of parts": ("ring-attention", FARTHER | {"links.size_factor": "60"}),
    "experts": ("experts", FARTHER | SLOWER | EXPERTS), "experts of copies": ("experts-x-data", FARTHER | SLOWER | EXPERTS),
    "a server of copies": ("parameter-server", FAR | {"steps": "2"}), "servers of two stages": ("pipeline-x-data", FAR | SERVED),
    "three to each other": ("everyone-to-everyone", FAR | {"grid.dp": "3", "batch": "24", "steps": "2"}),
    "both ways": ("pipeline-dualpipe", SLOW),
    "both ways, far apart": ("pipeline-dualpipe", FAR | SLOWER | MIRRORED),
    "a V": ("pipeline-zb-v", SLOW | SLOWER),
    "a V that is clipped": ("pipeline-zb-v", SLOW | SLOWER | {"optimizer.clip_norm": "1"}),
}


@pytest.mark.parametrize("job", JOBS)
def test_the_launch_pages_step_time_is_the_paced_runs(job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.runs.fleet.workers", lambda client=None: [])
    key, sets = JOBS[job]
    spec = changed(preset(key).spec, sets)
    planned_ms = plan(spec).step_ms
    for attempt in range(ATTEMPTS):
        found = measured(spec, tmp_path / str(attempt))
        off = planned_ms / found["step_ms"] - 1
        print(f"{job}: measured {found['step_ms']:.1f} ms, planned {planned_ms:.1f} ms, {off:+.2%}")
        if abs(off) <= STEP_TOLERANCE:
            break
    if found["realtime"] != {"granted"} or found["stolen"] > MOST_STOLEN:
        pytest.skip(f"wake-ups are late: {found['realtime']}, {found['stolen']:.1%} of this machine's time was stolen")
    assert abs(off) <= STEP_TOLERANCE
