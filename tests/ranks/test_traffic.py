"""What ranks hand to each other, by formulas, is what real ranks recorded: every collective and every message, to the byte."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.ranks.explained import changed
from tests.ranks.launch import Ran, run
from trainer import traffic
from trainer.grid import Grid
from trainer.memory.activations import hand_off_bytes
from trainer.presets import preset
from trainer.spec import JobSpec
from trainer.trace.kinds import Kind

pytestmark = pytest.mark.ranks

STEP = 1
COLLECTIVES = {
    Kind.ALL_REDUCE: "all_reduce", Kind.ALL_GATHER: "all_gather", Kind.REDUCE_SCATTER: "reduce_scatter",
    Kind.ALL_TO_ALL: "all_to_all",
}
SLICED = {"grid.ep": "1", "grid.tp": "2", "batch": "16"}
SHARED = {"grid.ep": "2", "grid.tp": "2", "batch": "32"}
BF16 = {"precision": "bf16"}
AGAIN = {"checkpointing": "layer"}
SEQUENCE = {"splits.tensor.sequence_parallel": "true"}
BY_HEADS = {"splits.context.attention": "all_to_all", "splits.context.order": "contiguous"}

JOBS = {
    "pipeline": ("pipeline-1f1b", {}), "two stages a rank": ("pipeline-interleaved", {}), "a V": ("pipeline-zb-v", {}),
    "bf16": ("pipeline-1f1b", BF16),
    "copies of two stages": ("pipeline-interleaved", {"grid.pp": "2", "grid.dp": "2"}),
    "copies": ("allreduce-ring", {}), "digits": ("ddp-digits", {}), "both": ("pipeline-x-data", {}),
    "slices": ("tensor", {}), "slices again": ("tensor", AGAIN), "slices of stages": ("tensor-x-pipeline", {}),
    "sequence": ("tensor", SEQUENCE), "sequence again": ("tensor", SEQUENCE | AGAIN),
    "sequence of stages": ("tensor-x-pipeline", SEQUENCE), "float64": ("tensor", {"precision": "float64"}),
    "ring": ("ring-attention", {}), "ring again": ("ring-attention", AGAIN), "heads": ("ring-attention", BY_HEADS),
    "heads again": ("ring-attention", BY_HEADS | AGAIN),
    "slices in bf16": ("tensor", AGAIN | BF16), "sequence in bf16": ("tensor-x-pipeline", SEQUENCE | AGAIN | BF16),
    "ring in bf16": ("ring-attention", BF16), "heads in bf16": ("ring-attention", BY_HEADS | AGAIN | BF16),
    "experts": ("experts", {}), "experts again": ("experts", AGAIN), "experts and copies": ("experts-x-data", {}),
    "slices of experts": ("experts", SLICED | AGAIN), "slices of shared experts in bf16": ("experts", SHARED | AGAIN | BF16),
    "parts of experts in bf16": ("experts", {"grid.ep": "1", "grid.cp": "4", "batch": "16"} | BF16),
    "copies of sliced experts": ("experts-x-data", SHARED | {"grid.dp": "2", "batch": "64"}),
    "three axes": ("three-axes", {}),
    "both ways": ("pipeline-dualpipe", {}), "copies both ways": ("pipeline-dualpipe", {"grid.pp": "2", "grid.dp": "2"}),
    **{name: (name, {}) for name in ("zero-1", "zero-2", "zero-3", "parameter-server", "everyone-to-everyone")},
}


@pytest.mark.parametrize("job", JOBS)
def test_traffic_by_formulas_is_what_ranks_recorded(job: str, tmp_path: Path) -> None:
    key, sets = JOBS[job]
    own = {f"collectives.{name}": "backend" for name in preset(key).spec.collectives.model_dump()}
    spec = changed(preset(key).spec, own | {"steps": "2", "pace.kind": "real", "links.kind": "real"} | sets)
    ran = run(spec, tmp_path).check()
    grid = Grid.of(spec.grid)
    for rank in range(spec.ranks):
        place = grid.address(rank).pp
        if spec.splits.data.mode == "parameter-server" and rank:
            continue  # the server's is the busiest, and that is what the formula is for
        assert recorded(ran, rank) == expected(spec, place), f"rank {rank}"


def recorded(ran: Ran, rank: int) -> Counter[tuple[str, str, int]]:
    own = [span for span in ran.of(*COLLECTIVES, Kind.SEND) if (span.rank, span.step) == (rank, STEP)]
    return Counter((span.group, COLLECTIVES.get(span.kind, "send"), span.bytes) for span in own)


def expected(spec: JobSpec, place: int) -> Counter[tuple[str, str, int]]:
    found: Counter[tuple[str, str, int]] = Counter()
    for talk in traffic.talks(spec, place):
        found[talk.axis, talk.collective, talk.size_bytes] += traffic.calls(spec, talk)
    if sent := traffic.letters(spec, place):
        found["pp", "send", hand_off_bytes(spec)] += sent
    return found
