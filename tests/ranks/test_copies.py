"""Whichever way copies share their work, they train to the unsplit model's loss and parameters."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import trainer.rank
from tests.ranks.kept import joined
from tests.ranks.launch import Ran, Span, run
from tests.ranks.unsplit import assert_equals_one_process, of_one_process, unsplit_end, unsplit_norms
from trainer.grid import Grid
from trainer.job import Control, RankJob
from trainer.spec import JobSpec, parse
from trainer.trace.kinds import Kind
from trainer.training import Training

pytestmark = pytest.mark.ranks

MODES = ["ddp", "zero-1", "zero-2", "zero-3", "parameter-server", "everyone"]
LAYERS, MICRO_BATCHES, STEPS = 2, 2, 20
UNITS = LAYERS + 2  # what is gathered at once: a block, the embedding, the head
STEP = 2  # one that is like any other


def job(mode: str, grid: dict[str, int], **changes: Any) -> JobSpec:
    return parse({
        "model": {"name": "gpt", "layers": LAYERS, "width": 16, "heads": 2, "context": 8}, "grid": grid,
        "splits": {"data": {"mode": mode}, "tensor": {"sequence_parallel": True}},
        "pace": {"kind": "paced", "forward_ms": 0.1, "backward_ms": 0.1},  # its class keeps hand-offs quick on a busy machine
        "batch": 16, "steps": STEPS, "precision": "float64", "seed": 3, "timeout_seconds": 30.0,
        "schedule": {"name": "1f1b", "micro_batches": MICRO_BATCHES}, "optimizer": {"learning_rate": 1e-2},
    } | changes)


def keeping(job: RankJob, control: Control) -> int:
    """A rank that leaves its parameters, whole, in its folder when it is done."""
    prove_equal = Training.prove_equal

    def keep(training: Training) -> bool:
        torch.save(training.copies.whole(), job.folder / f"parameters-{job.rank}.pt")
        return prove_equal(training)

    Training.prove_equal = keep  # type: ignore[method-assign]
    return trainer.rank.main(job, control)


def in_whole_model(name: str, spec: JobSpec) -> str:
    """The name in the unsplit model of "stage.layer.…": the first stage has the embedding in front."""
    stage, layer, rest = name.split(".", 2)
    stages = spec.grid.pp * spec.schedule.chunks
    first = int(stage) * (spec.model.layers // stages) + bool(int(stage))
    return f"{first + int(layer)}.{rest}"


def assert_parameters_are_one_processs(spec: JobSpec, folder: Path) -> None:
    expected, found = of_one_process(unsplit_end, spec), set()
    by_rank: list[dict[str, Tensor]] = [torch.load(folder / f"parameters-{rank}.pt") for rank in range(spec.ranks)]
    for ranks in Grid.of(spec.grid).groups("tp"):
        for name in by_rank[ranks[0]]:
            whole = joined([by_rank[rank][name] for rank in ranks], name) if len(ranks) > 1 else by_rank[ranks[0]][name]
            place = in_whole_model(name, spec)
            # Adam divides by gradients' size: where that is rounding, so is what it makes of it.
            np.testing.assert_allclose(whole.numpy(), expected[place], rtol=1e-9, atol=1e-10)
            found.add(place)
    assert found == set(expected)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("grid", [{"dp": 2}, {"dp": 4}, {"dp": 2, "pp": 2}, {"dp": 2, "tp": 2}, {"dp": 2, "cp": 2}, {"cp": 2}],
                         ids=lambda grid: "·".join(f"{axis}{size}" for axis, size in grid.items()))
def test_trains_as_one_process(tmp_path: Path, mode: str, grid: dict[str, int]) -> None:
    spec = job(mode, grid)
    ran = run(spec, tmp_path, main=keeping).check()
    assert_equals_one_process(ran)
    ran.assert_lanes_are_in_order()
    assert {rank for rank, kind, text in ran.marks if (kind, text) == ("parameters", "equal")} == set(range(spec.ranks))
    assert_parameters_are_one_processs(spec, tmp_path)


@pytest.mark.parametrize(("schedule", "chunks"), [("zb-h1", 1), ("zb-v", 2), ("dualpipe-v", 2)])
@pytest.mark.parametrize("mode", ["zero-1", "zero-2", "parameter-server"])
def test_backwards_in_two_halves(tmp_path: Path, mode: str, schedule: str, chunks: int) -> None:
    spec = job(mode, {"dp": 2, "pp": 2}, schedule={"name": schedule, "chunks": chunks, "micro_batches": 4}, steps=8,
               model={"name": "gpt", "layers": 4, "width": 16, "heads": 2, "context": 8})
    ran = run(spec, tmp_path, main=keeping).check()
    assert_equals_one_process(ran)
    ran.assert_lanes_are_in_order()
    assert_parameters_are_one_processs(spec, tmp_path)


@pytest.mark.parametrize("mode", ["zero-1", "zero-2", "zero-3"])
def test_pieces_that_do_not_come_out_even(tmp_path: Path, mode: str) -> None:
    """Ten digits over four copies are 3, 3, 3 and 1; a width of 5 leaves the last copy nothing."""
    spec = job(mode, {"dp": 4}, model={"name": "perceptron", "width": 5}, optimizer={"name": "sgd", "learning_rate": 0.05})
    ran = run(spec, tmp_path, main=keeping).check()
    assert_equals_one_process(ran)
    assert_parameters_are_one_processs(spec, tmp_path)


@pytest.mark.parametrize("mode", ["zero-2", "zero-3"])
def test_three_axes_and_two_stages_a_rank(tmp_path: Path, mode: str) -> None:
    spec = job(mode, {"dp": 2, "pp": 2, "tp": 2}, schedule={"name": "interleaved", "chunks": 2, "micro_batches": 4}, steps=8,
               model={"name": "gpt", "layers": 4, "width": 16, "heads": 2, "context": 8})
    ran = run(spec, tmp_path, main=keeping).check()
    assert_equals_one_process(ran)
    ran.assert_lanes_are_in_order()
    assert_parameters_are_one_processs(spec, tmp_path)


def of_copies(ran: Ran, rank: int) -> list[Span]:
    """What `rank` exchanged with other copies in a step, but for the eight bytes of its loss; in order of time."""
    spans = [span for span in ran.spans if (span.rank, span.step, span.group) == (rank, STEP, "dp")
             and span.kind is not Kind.WAIT and span.bytes > 8]
    return sorted(spans, key=lambda span: span.start_ns)


def whole_bytes(spec: JobSpec) -> int:
    return int(sum(parameter.nbytes for parameter in of_one_process(unsplit_end, spec.model_copy(update={"steps": 1})).values()))


def test_ddp_averages_in_buckets(tmp_path: Path) -> None:
    spec = job("ddp", {"dp": 2}, steps=4)
    splits = spec.splits.model_copy(update={"data": spec.splits.data.model_copy(update={"bucket_mb": 0.02})})
    ran = run(spec.model_copy(update={"splits": splits}), tmp_path).check()
    buckets = of_copies(ran, 0)
    assert {span.kind for span in buckets} == {Kind.ALL_REDUCE}
    assert len(buckets) > 2
    assert sum(span.bytes for span in buckets) == whole_bytes(spec), "each gradient once a step, whatever the micro-batches"


GATHERS, SCATTERS = {Kind.ALL_GATHER: UNITS}, {Kind.REDUCE_SCATTER: UNITS}


@pytest.mark.parametrize(("mode", "forward", "backwards", "after"), [
    ("zero-1", {}, [{}, SCATTERS], GATHERS),
    ("zero-2", {}, [SCATTERS, SCATTERS], GATHERS),
    ("zero-3", GATHERS, [GATHERS | SCATTERS, GATHERS | SCATTERS], {}),
])
def test_what_zero_exchanges(tmp_path: Path, mode: str, forward: dict[Kind, int], backwards: list[dict[Kind, int]],
                             after: dict[Kind, int]) -> None:
    spec = job(mode, {"dp": 2}, steps=4)
    ran = run(spec, tmp_path).check()
    whole = whole_bytes(spec)  # every first axis is even, so nothing is padded
    for rank in range(2):
        exchanged = of_copies(ran, rank)
        for kind, expected in ((Kind.FORWARD, [forward] * MICRO_BATCHES), (Kind.BACKWARD, backwards)):
            outer = [span for span in ran.of(kind) if (span.rank, span.step) == (rank, STEP)]
            for work, counts in zip(sorted(outer, key=lambda span: span.micro_batch), expected, strict=True):
                inside = [span for span in exchanged if work.start_ns <= span.start_ns < work.end_ns]
                assert Counter(span.kind for span in inside) == counts, f"{work.name} of rank {rank}"
                assert Counter({span.kind: 0 for span in inside} | _bytes(inside)) == dict.fromkeys(counts, whole)
        (optimizer,) = (span for span in ran.of(Kind.OPTIMIZER) if (span.rank, span.step) == (rank, STEP))
        behind = [span for span in exchanged if span.start_ns >= optimizer.end_ns]
        assert Counter(span.kind for span in behind) == after


def _bytes(spans: list[Span]) -> dict[Kind, int]:
    total: Counter[Kind] = Counter()
    for span in spans:
        total[span.kind] += span.bytes
    return dict(total)


def test_everything_goes_through_the_servers_port(tmp_path: Path) -> None:
    spec, copies = job("parameter-server", {"dp": 4}, steps=4), 4
    ran, whole = run(spec, tmp_path).check(), whole_bytes(spec)
    spans = {rank: [(span.kind, span.peer, span.bytes, span.name) for span in of_copies(ran, rank)] for rank in range(copies)}
    others = range(1, copies)
    assert spans[0] == [(Kind.RECEIVE, rank, whole, "gradients") for rank in others] + [
        (Kind.SEND, rank, whole, "parameters") for rank in others]
    for rank in others:
        assert spans[rank] == [(Kind.SEND, 0, whole, "gradients"), (Kind.RECEIVE, 0, whole, "parameters")]
    assert sum(size for _, _, size, _ in spans[0]) == 2 * (copies - 1) * whole
    assert {span.rank for span in ran.of(Kind.OPTIMIZER)} == {0}, "nobody else has anything to update"
    assert_ends_meet(ran)


def test_everyone_sends_everything_to_everyone(tmp_path: Path) -> None:
    spec, copies = job("everyone", {"dp": 4}, steps=4), 4
    ran, whole = run(spec, tmp_path).check(), whole_bytes(spec)
    for kind in (Kind.SEND, Kind.RECEIVE):
        ends = [span for span in ran.of(kind) if span.step == STEP]
        assert {(span.rank, span.peer) for span in ends} == {(a, b) for a in range(copies) for b in range(copies) if a != b}
        assert sum(span.bytes for span in ends) == copies * (copies - 1) * whole
    assert_ends_meet(ran)


def assert_ends_meet(ran: Ran) -> None:
    """Every message has both its ends, and did not arrive before it was sent."""
    sends = {(span.rank, span.peer, span.sequence, span.name): span for span in ran.of(Kind.SEND)}
    receives = {(span.peer, span.rank, span.sequence, span.name): span for span in ran.of(Kind.RECEIVE)}
    assert len(sends) == len(ran.of(Kind.SEND))
    assert set(sends) == set(receives)
    assert all(receives[end].end_ns > sends[end].start_ns for end in sends)


@pytest.mark.parametrize("grid", [{"dp": 2}, {"dp": 2, "pp": 2}, {"dp": 2, "tp": 2}], ids=["dp", "dp·pp", "dp·tp"])
@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_clipped_by_the_whole_models_length(tmp_path: Path, mode: str, grid: dict[str, int]) -> None:
    """Whoever owns a number counts it, and nobody else does."""
    spec = job(mode, grid, optimizer={"learning_rate": 1e-2, "clip_norm": 0.8})
    ran = run(spec, tmp_path, main=keeping).check()
    assert_equals_one_process(ran)
    expected = of_one_process(unsplit_norms, spec)
    assert [norm for _, norm in sorted(ran.counters["grad_norm"].items())] == pytest.approx(expected, rel=1e-9, abs=0)
    assert max(expected) > 0.8, "some of them were clipped"
    assert_parameters_are_one_processs(spec, tmp_path)
