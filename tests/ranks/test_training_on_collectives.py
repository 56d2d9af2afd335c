"""DDP, FSDP2 and DTensor, unchanged, train to the same loss on our algorithms as on the backend's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from tests.ranks.launch import run
from tests.ranks.probed import Probed
from tests.ranks.unsplit import assert_equals_one_process
from trainer.collectives.plans import ALGORITHMS
from trainer.job import Control, RankJob
from trainer.spec import GridSpec, JobSpec, Perceptron, parse
from trainer.trace.kinds import Kind

pytestmark = pytest.mark.ranks

STEPS = 4
GPT = {"name": "gpt", "layers": 2, "width": 16, "heads": 4, "context": 12}
BRISK = {"kind": "paced", "forward_ms": 0.1, "backward_ms": 0.1}


def job(grid: dict[str, int], collectives: dict[str, str], **more: Any) -> JobSpec:
    return parse({"model": GPT, "grid": grid, "collectives": collectives, "batch": 12, "steps": STEPS, "precision": "float64",
                  "pace": BRISK, "schedule": {"name": "1f1b", "micro_batches": 2}, "timeout_seconds": 30} | more)


@pytest.mark.parametrize("algorithm", [*ALGORITHMS["all_reduce"], "auto"])
def test_copies_and_slices_and_stages(algorithm: str, tmp_path: Path) -> None:
    everywhere = {"all_reduce": algorithm, "all_gather": "ring", "broadcast": "tree", "barrier": "recursive-doubling"}
    ran = run(job({"dp": 2, "pp": 2, "tp": 2}, everywhere), tmp_path).check()
    assert_equals_one_process(ran)
    ran.assert_lanes_are_in_order()
    named = {span.name for span in ran.of(Kind.ALL_REDUCE)}
    assert len(named) == 1 if algorithm != "auto" else named
    assert all(name.startswith("all-reduce · ") for name in named)
    assert (algorithm == "auto") == any(kind == "algorithm" for _, kind, _ in ran.marks)


def test_three_copies(tmp_path: Path) -> None:
    """No power of two, and DDP's buckets on a thread of their own."""
    ran = run(job({"dp": 3}, {"all_reduce": "halving-doubling"}), tmp_path).check()
    assert_equals_one_process(ran)
    assert {text for _, kind, text in ran.marks if kind == "parameters"} == {"equal"}


def test_sequence_parallel_slices(tmp_path: Path) -> None:
    chosen = {"all_reduce": "tree", "all_gather": "pat", "reduce_scatter": "recursive-halving"}
    splits = {"tensor": {"sequence_parallel": True}}
    assert_equals_one_process(run(job({"tp": 4}, chosen, splits=splits), tmp_path).check())


@pytest.mark.parametrize("algorithm", ALGORITHMS["all_to_all"])
def test_heads_by_all_to_all(algorithm: str, tmp_path: Path) -> None:
    splits = {"context": {"attention": "all_to_all"}}
    assert_equals_one_process(run(job({"cp": 4}, {"all_to_all": algorithm}, splits=splits), tmp_path).check())


def _model() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.Tanh(), torch.nn.Linear(12, 8)).double()


def _losses(model: torch.nn.Module, data: torch.Tensor) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        loss = (model(data) - 1).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total = loss.detach().clone()
        dist.all_reduce(total, dist.ReduceOp.AVG)
        losses.append(total.item())
    return losses


def frameworks(job: RankJob, control: Control) -> int:
    probed = Probed(job)
    mesh = init_device_mesh("cpu", (probed.ranks,))
    torch.manual_seed(1)
    data = torch.randn(probed.ranks * 3, 8).double()
    mine = data[job.rank * 3:][:3]

    def sharded() -> list[float]:
        model = _model()
        for part in (model[0], model[2], model):
            fully_shard(part, mesh=mesh)
        return _losses(model, mine)

    def sliced() -> list[float]:
        model = parallelize_module(_model(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
        return _losses(model, data)

    def copied() -> list[float]:
        return _losses(torch.nn.parallel.DistributedDataParallel(_model()), mine)

    expected = copied()
    assert expected[-1] < expected[0]
    for algorithm in ALGORITHMS["all_reduce"]:
        for gather, scatter in (("ring", "ring"), ("pat", "pat"), ("bruck", "tree"), ("recursive-doubling", "recursive-halving")):
            probed.choices |= {"all_reduce": algorithm, "all_gather": gather, "reduce_scatter": scatter, "broadcast": "ring"}
            probed.seen()
            for train in (copied, sharded, sliced):
                assert train() == pytest.approx(expected, rel=1e-12), f"{train.__name__} on {algorithm}, {gather}, {scatter}"
            assert probed.probe.settle()
            assert {row[9] for row in probed.rows if " · " not in row[9]} <= {"scatter", "barrier"}, "all others were ours"
    return 0


@pytest.mark.parametrize("ranks", [3, 4])
def test_frameworks(ranks: int, tmp_path: Path) -> None:
    spec = JobSpec(model=Perceptron(), grid=GridSpec(dp=ranks), batch=8 * ranks)
    run(spec, tmp_path, main=frameworks).check()
