"""Our algorithms give what the backend's give, whatever the ranks, sizes, types and operations; every step is a span."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from tests.ranks.launch import run
from tests.ranks.probed import Probed
from trainer.collectives.cost import chunk_bytes
from trainer.collectives.plans import ALGORITHMS, plan_of
from trainer.job import Control, RankJob
from trainer.spec import GridSpec, JobSpec, Perceptron
from trainer.trace.kinds import Kind

pytestmark = pytest.mark.ranks

TYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64)
OPERATIONS = {"sum": dist.ReduceOp.SUM, "mean": dist.ReduceOp.AVG, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN}
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-13, torch.bfloat16: 5e-2, torch.int64: 0.0}
RANDOM_CASES = 60


def values(size: int, dtype: torch.dtype, seed: int, rank: int) -> torch.Tensor:
    made = torch.Generator().manual_seed(seed * 1000 + rank)
    if dtype.is_floating_point:
        return torch.rand(size, generator=made, dtype=torch.float64).to(dtype)
    return torch.randint(-1000, 1000, (size,), generator=made, dtype=dtype)


class Case:
    """One collective over `size` elements, or of that many a rank, on the inputs of `seed`."""

    def __init__(self, probed: Probed, collective: str, size: int, dtype: torch.dtype, operation: str, root: int, seed: int):
        self.probed, self.collective, self.size, self.dtype, self.root, self.seed = probed, collective, size, dtype, root, seed
        self.operation = OPERATIONS["sum" if operation == "mean" and not dtype.is_floating_point else operation]

    def result(self, algorithm: str, async_op: bool) -> torch.Tensor:
        self.probed.choices[self.collective] = algorithm
        ranks = self.probed.ranks
        of_all = self.collective in ("reduce_scatter", "all_to_all")
        given = values(self.size * (ranks if of_all else 1), self.dtype, self.seed, self.probed.rank)
        kept = given.clone()
        output, work = self._call(given, async_op)
        if async_op:
            assert work is not None
            work.wait()
            assert work.is_completed()
        if output is not given:
            assert torch.equal(given, kept), "inputs stay what they are"
        return output

    def _call(self, given: torch.Tensor, async_op: bool) -> tuple[torch.Tensor, dist.Work | None]:
        match self.collective:
            case "all_reduce":
                return given, dist.all_reduce(given, self.operation, async_op=async_op)
            case "all_gather":
                output = given.new_empty(self.size * self.probed.ranks)
                return output, dist.all_gather_single(output, given, async_op=async_op)
            case "reduce_scatter":
                output = given.new_empty(self.size)
                return output, dist.reduce_scatter_single(output, given, self.operation, async_op=async_op)
            case "all_to_all":
                output = torch.empty_like(given)
                return output, dist.all_to_all_single(output, given, async_op=async_op)
            case "broadcast":
                return given, dist.broadcast(given, self.root, async_op=async_op)
            case _:
                work = dist.reduce(given, self.root, self.operation, async_op=async_op)
                return given, work

    def check(self, algorithm: str, async_op: bool) -> None:
        expected, found = self.result("backend", False), self.result(algorithm, async_op)
        if self.collective == "reduce" and self.probed.rank != self.root:
            return
        about = f"{self.collective} {algorithm} of {self.size} {self.dtype} {self.operation} to {self.root}, seed {self.seed}"
        moved = self.collective in ("all_gather", "all_to_all", "broadcast")
        tolerance = 0.0 if moved else TOLERANCE[self.dtype]
        assert torch.allclose(found.double(), expected.double(), rtol=tolerance, atol=tolerance), about


def every_algorithm(job: RankJob, control: Control) -> int:
    """On every size at which something could go wrong, and on as many more at random."""
    probed = Probed(job)
    ranks = probed.ranks
    seed = 0
    sizes = sorted({0, 1, ranks - 1, ranks, ranks + 1, 1000})
    for collective, algorithms in ALGORITHMS.items():
        if collective == "barrier":
            continue
        for algorithm in algorithms:
            for at, size in enumerate(sizes):
                for dtype in TYPES if size == ranks + 1 else TYPES[at % 4:at % 4 + 1]:
                    seed += 1
                    operation = tuple(OPERATIONS)[seed % 4]
                    Case(probed, collective, size, dtype, operation, seed % ranks, seed).check(algorithm, bool(seed & 1))
    draw = random.Random(ranks)
    for number in range(RANDOM_CASES):
        collective = draw.choice([name for name in ALGORITHMS if name != "barrier"])
        algorithm = draw.choice(list(ALGORITHMS[collective]))
        size = draw.choice([draw.randrange(40), draw.randrange(5000), draw.randrange(100_000)])
        dtype, operation, root = draw.choice(TYPES), draw.choice(list(OPERATIONS)), draw.randrange(ranks)
        Case(probed, collective, size, dtype, operation, root, 10_000 + number).check(algorithm, draw.random() < 0.5)
    return 0


def large(job: RankJob, control: Control) -> int:
    """A million elements: messages of several segments."""
    probed = Probed(job)
    for collective, algorithms in ALGORITHMS.items():
        for algorithm in algorithms if collective != "barrier" else ():
            size = 1_000_000 if collective == "all_reduce" else 1_000_000 // probed.ranks
            Case(probed, collective, size, torch.float32, "sum", 1, 7).check(algorithm, False)
    return 0


def same_to_the_last_bit(job: RankJob, control: Control) -> int:
    """Copies of a model stay equal: every rank has the very same sums."""
    probed = Probed(job)
    for algorithm in ALGORITHMS["all_reduce"]:
        probed.choices["all_reduce"] = algorithm
        mine = values(1001, torch.float32, 3, job.rank)
        dist.all_reduce(mine)
        everyone = [torch.empty_like(mine) for _ in range(probed.ranks)]
        dist.all_gather(everyone, mine)
        assert all(torch.equal(mine, other) for other in everyone), algorithm
    return 0


def steps_are_spans(job: RankJob, control: Control) -> int:
    """A span at either end of every move, and between each pair of ranks as many bytes as the plan says, to the byte."""
    probed = Probed(job)
    ranks, elements = probed.ranks, 103
    for algorithm in ALGORITHMS["all_reduce"]:
        probed.seen()
        probed.steps.clear()
        probed.choices["all_reduce"] = algorithm
        dist.all_reduce(torch.ones(elements, dtype=torch.float64))
        assert probed.probe.settle()
        plan = plan_of("all_reduce", algorithm, ranks)
        sizes = [8 * size for size in chunk_bytes(plan, elements)]
        sent = Counter[tuple[int, int]]()
        got = Counter[tuple[int, int]]()
        for kind, _, _, step, _, _, peer, size, _, name, axis in probed.steps:
            assert (step, axis) == (5, "everyone") and name.startswith(f"{algorithm} ")
            if kind == Kind.SEND:
                sent[job.rank, peer] += size
            else:
                got[peer, job.rank] += size
        traffic = plan.traffic(sizes)
        assert sent == {pair: size for pair, size in traffic.items() if pair[0] == job.rank}
        assert got == {pair: size for pair, size in traffic.items() if pair[1] == job.rank}
        assert [(row[0], row[9]) for row in probed.rows] == [(Kind.ALL_REDUCE, f"all-reduce · {algorithm}")]
        if algorithm == "ring":
            first = next(row[9] for row in probed.steps if row[0] == Kind.SEND)
            assert first == f"ring 1/{2 * ranks - 2} · chunk {job.rank}"
    return 0


def many_at_once(job: RankJob, control: Control) -> int:
    """Asynchronous ones of two groups, called in another order by each rank, and synchronous ones in between."""
    probed = Probed(job)
    probed.choices |= {"all_reduce": "ring", "barrier": "tree"}
    other = dist.new_group(list(range(probed.ranks)))
    groups = [dist.group.WORLD, other] if job.rank % 2 else [other, dist.group.WORLD]
    given, works = [], []
    for number in range(20):
        for group in groups:
            given.append(torch.full((200_000 if number % 3 == 0 else 17,), float(number)))
            works.append(dist.all_reduce(given[-1], group=group, async_op=True))
        now = torch.ones(5)
        dist.all_reduce(now)
        assert now.tolist() == [probed.ranks] * 5
    dist.barrier()
    for work in works:
        assert work is not None
        work.wait()
    assert all((tensor == at // 2 * probed.ranks).all() for at, tensor in enumerate(given))
    return 0


def odd_requests(job: RankJob, control: Control) -> int:
    """Tensors that lie in no one piece, lists, chunks of several sizes, types and operations that are the backend's to do."""
    probed = Probed(job)
    probed.choices |= {"all_reduce": "halving-doubling", "all_gather": "pat", "reduce_scatter": "tree", "all_to_all": "bruck",
                       "barrier": "recursive-doubling"}
    rank, ranks = job.rank, probed.ranks
    across = torch.arange(6.0).view(2, 3).t()
    dist.all_reduce(across)
    assert across.tolist() == [[0, 3 * ranks], [ranks, 4 * ranks], [2 * ranks, 5 * ranks]]
    parts = [torch.empty(3) for _ in range(ranks)]
    dist.all_gather(parts, torch.full((3,), float(rank)))
    assert [part.tolist() for part in parts] == [[float(at)] * 3 for at in range(ranks)]
    mine = torch.empty(2)
    dist.reduce_scatter(mine, [torch.full((2,), float(at)) for at in range(ranks)])
    assert mine.tolist() == [rank * ranks] * 2
    sizes = [rank + at for at in range(ranks)]  # what goes to each rank; the same comes back
    got = torch.empty(sum(sizes))
    dist.all_to_all_single(got, torch.full((sum(sizes),), float(rank)), sizes, sizes)
    assert got.tolist() == [float(at) for at in range(ranks) for _ in range(rank + at)]
    dist.barrier()
    probed.seen()
    flags = torch.tensor([rank == 0, False])
    dist.all_reduce(flags, dist.ReduceOp.MAX)
    assert flags.tolist() == [True, False]
    turning = torch.full((2,), 1j)
    dist.all_reduce(turning)
    assert turning.tolist() == [ranks * 1j] * 2
    assert probed.probe.settle()
    assert [row[9] for row in probed.rows] == ["all-reduce", "all-reduce · halving-doubling"], "flags are the backend's to do"
    return 0


def leave_after_rank_0(probed: Probed) -> None:
    """Without a collective. Rank 0, who has the store, stays until the other has heard."""
    if probed.rank == 0:
        probed.store.set("through", "")
        probed.store.wait(["heard"])
    else:
        probed.store.wait(["through"])
        probed.store.set("heard", "")


def a_peer_that_does_not_come(job: RankJob, control: Control) -> int:
    """Who waits hears of it, by the future that DDP reads, and whoever does not by the next call."""
    probed = Probed(job, timeout_seconds=3)
    probed.choices["all_reduce"] = "ring"
    if job.rank == 0:
        work = dist.all_reduce(torch.ones(8), async_op=True)
        assert work is not None
        with pytest.raises(RuntimeError, match="Timed out waiting"):
            work.get_future().wait()
        with pytest.raises(RuntimeError, match=r"a collective before this one has failed: .*Timed out waiting"):
            dist.all_reduce(torch.ones(8))
    leave_after_rank_0(probed)
    return 0


def a_peer_that_does_not_come_either(job: RankJob, control: Control) -> int:
    probed = Probed(job, timeout_seconds=3)
    probed.choices["all_reduce"] = "ring"
    if job.rank == 0:
        with pytest.raises(RuntimeError, match="Timed out waiting"):
            dist.all_reduce(torch.ones(8))
    leave_after_rank_0(probed)
    return 0


def chosen_by_cost(job: RankJob, control: Control) -> int:
    probed = Probed(job)
    probed.choices["all_reduce"] = "auto"
    for size in (4, 4, 4_000_000):
        dist.all_reduce(torch.ones(size))
    assert probed.probe.settle()
    assert len(probed.said) == 2, "once for each shape"
    small, large = probed.said
    assert small.startswith("all-reduce of 16 bytes over everyone: recursive-doubling, ")
    assert large.startswith("all-reduce of 16000000 bytes over everyone: halving-doubling, ") and "; ring " in large
    assert [row[9] for row in probed.rows] == ["all-reduce · recursive-doubling"] * 2 + ["all-reduce · halving-doubling"]
    return 0


def job_of(ranks: int) -> JobSpec:
    return JobSpec(model=Perceptron(), grid=GridSpec(dp=ranks), batch=8 * ranks)


@pytest.mark.parametrize("ranks", range(2, 10))
def test_every_algorithm_gives_what_the_backend_gives(ranks: int, tmp_path: Path) -> None:
    run(job_of(ranks), tmp_path, main=every_algorithm).check()


@pytest.mark.parametrize(("script", "ranks"), [
    (large, 4), (same_to_the_last_bit, 5), (steps_are_spans, 4), (steps_are_spans, 5), (many_at_once, 3), (odd_requests, 4),
    (a_peer_that_does_not_come, 2), (a_peer_that_does_not_come_either, 2), (chosen_by_cost, 4),
], ids=lambda item: getattr(item, "__name__", str(item)))
def test_beneath_torch(script: object, ranks: int, tmp_path: Path) -> None:
    run(job_of(ranks), tmp_path, main=script).check()  # type: ignore[arg-type]
