"""What ranks have in memory, counted while they train, is what formulas say, to the byte."""

from __future__ import annotations

from dataclasses import asdict
from itertools import accumulate
from pathlib import Path

import pytest

from tests.ranks.launch import Ran, run
from tests.ranks.test_equals_one_process import DEEP, GPT, HOLDS, job
from trainer.grid import Grid
from trainer.memory import predicted
from trainer.memory.predicted import micro_batch_bytes
from trainer.schedules import schedule_of, stages_of
from trainer.schedules.family import SCHEDULES
from trainer.spec import ContextSplit, GridSpec, JobSpec, Perceptron, SplitsSpec, TensorSplit, parse
from trainer.trace.kinds import MODEL_WORK

pytestmark = pytest.mark.ranks


def peaks(ran: Ran) -> list[dict[str, float]]:
    return [
        {kind: max(value for _, value in values) for (of, kind), values in ran.memory.items() if of == rank}
        for rank in range(ran.spec.ranks)
    ]


def assert_as_predicted(ran: Ran) -> None:
    grid, expected = Grid.of(ran.spec.grid), predicted(ran.spec)
    assert peaks(ran) == [asdict(expected[grid.address(rank).pp]) for rank in range(ran.spec.ranks)]


def trained(spec: JobSpec, folder: Path) -> Ran:
    return run(parse(spec.to_json()), folder).check()


@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
@pytest.mark.parametrize("schedule", ["naive", "gpipe", "1f1b"])
def test_a_pipeline_of_one_stage_a_rank(tmp_path: Path, schedule: str, split: bool) -> None:
    assert_as_predicted(trained(job(GPT, GridSpec(pp=4), schedule, split=split), tmp_path))


@pytest.mark.parametrize(("schedule", "ranks", "chunks"), [
    ("zb-h1", 4, 1), ("interleaved", 2, 2), ("breadth-first", 2, 2), ("interleaved-zb", 2, 2), ("zb-v", 4, 2),
    ("dualpipe-v", 2, 2), ("interleaved", 1, 2), ("dualpipe", 2, 1),
])
def test_schedules_of_their_own_kind(tmp_path: Path, schedule: str, ranks: int, chunks: int) -> None:
    assert_as_predicted(trained(job(DEEP, GridSpec(pp=ranks), schedule, chunks=chunks), tmp_path))


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_the_peak_is_the_bound_times_one_micro_batch(tmp_path: Path, schedule: str) -> None:
    """GPipe holds all micro-batches, 1F1B as many as there are stages from here on."""
    spec = job(GPT, GridSpec(pp=4), schedule, micro_batches=6, batch=24)
    ran = trained(spec, tmp_path)
    sizes = micro_batch_bytes(spec, stages_of(spec))
    for rank, peak in enumerate(peaks(ran)):
        bound = 6 if schedule == "gpipe" else min(6, 4 - rank)
        assert SCHEDULES[schedule].held(rank, 4, 6, 1) == bound
        assert peak["activations"] / sizes[rank].forward == bound
        spans = sorted((span for span in ran.of(*MODEL_WORK) if (span.rank, span.step) == (rank, 1)), key=lambda s: s.start_ns)
        assert max(accumulate(HOLDS.get(span.kind, 0) for span in spans)) == bound
    assert len(schedule_of(spec)) == 4


@pytest.mark.parametrize("data", ["ddp", "zero-1"])
@pytest.mark.parametrize("grid", [GridSpec(pp=4), GridSpec(pp=2, dp=2), GridSpec(pp=2, tp=2)], ids=["pp4", "pp2-dp2", "pp2-tp2"])
def test_under_dualpipe_the_model_is_there_twice(tmp_path: Path, grid: GridSpec, data: str) -> None:
    splits = SplitsSpec.model_validate({"data": {"mode": data}})
    spec = job(DEEP, grid, "dualpipe", 2 * grid.pp).model_copy(update={"steps": 3, "batch": 32, "splits": splits})
    ran = trained(spec, tmp_path)
    assert_as_predicted(ran)
    once = predicted(job(DEEP, GridSpec(pp=grid.pp, tp=grid.tp), "1f1b"))
    of_one_copy = [peak["weights"] for peak in peaks(ran)[:grid.pp * grid.tp:grid.tp]]
    times = 2 if data == "ddp" else 1 / grid.dp  # of pieces, as many as there are copies
    assert sum(of_one_copy) == times * sum(rank.weights for rank in once)


def test_dualpipe_holds_one_micro_batch_more_than_there_are_ranks(tmp_path: Path) -> None:
    """Ranks in the middle have two stages of one size, so their peak is that bound to the byte."""
    spec = job(DEEP, GridSpec(pp=4), "dualpipe", 10).model_copy(update={"steps": 3, "batch": 40})
    found, sizes = peaks(trained(spec, tmp_path)), micro_batch_bytes(spec, stages_of(spec))
    assert sizes[1] == sizes[2]
    for rank in (1, 2):
        assert SCHEDULES["dualpipe"].held(rank, 4, 10, 1) == 5
        assert found[rank]["activations"] / sizes[1].forward == 5


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(("grid", "splits"), [
    (GridSpec(dp=2), SplitsSpec()),
    (GridSpec(tp=2), SplitsSpec()),
    (GridSpec(tp=2), SplitsSpec(tensor=TensorSplit(sequence_parallel=True))),
    (GridSpec(cp=2), SplitsSpec()),
    (GridSpec(cp=2), SplitsSpec(context=ContextSplit(attention="all_to_all"))),
    (GridSpec(pp=2, cp=2), SplitsSpec(context=ContextSplit(order="zigzag"))),
    (GridSpec(dp=2, pp=2, tp=2), SplitsSpec()),
], ids=["dp2", "tp2", "tp2-sequence", "cp2-ring", "cp2-heads", "pp2-cp2-zigzag", "dp2-pp2-tp2"])
def test_what_is_shared_inside_a_stage(tmp_path: Path, grid: GridSpec, splits: SplitsSpec, precision: str) -> None:
    spec = job(GPT, grid, "1f1b").model_copy(update={"splits": splits, "precision": precision, "steps": 3})
    assert_as_predicted(trained(spec, tmp_path))


@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
@pytest.mark.parametrize("grid", [GridSpec(pp=4), GridSpec(dp=2)], ids=["pp4", "dp2"])
def test_a_perceptron(tmp_path: Path, grid: GridSpec, split: bool) -> None:
    assert_as_predicted(trained(job(Perceptron(hidden_layers=3), grid, "1f1b", split=split, optimizer="sgd"), tmp_path))


@pytest.mark.parametrize("checkpointing", ["none", "layer"])
def test_a_perceptrons_put_off_layers_keep_what_a_stage_beside_them_made(tmp_path: Path, checkpointing: str) -> None:
    spec = job(Perceptron(hidden_layers=3), GridSpec(pp=2), "zb-v", chunks=2)
    assert_as_predicted(trained(spec.model_copy(update={"checkpointing": checkpointing, "steps": 2}), tmp_path))


@pytest.mark.parametrize(("mode", "micro_batches"), [("zero-1", 1), ("zero-1", 4), ("zero-2", 4), ("zero-3", 4)])
def test_pieces_that_do_not_come_out_even_of_a_step_or_two(tmp_path: Path, mode: str, micro_batches: int) -> None:
    """A width of 5 over two copies: what FSDP gathers has a row that no parameter has. The rank with most has three of five."""
    spec = job(Perceptron(hidden_layers=3, width=5), GridSpec(dp=2, pp=2), "1f1b", micro_batches)
    splits = SplitsSpec.model_validate({"data": {"mode": mode}})
    ran = trained(spec.model_copy(update={"splits": splits, "steps": 1 if micro_batches == 4 else 2}), tmp_path)
    most = [{kind: max(peak[kind] for peak in peaks(ran)[place::2]) for kind in peaks(ran)[0]} for place in range(2)]
    assert most == [asdict(rank) for rank in predicted(ran.spec)]


@pytest.mark.parametrize("mode", ["zero-1", "zero-2", "zero-3", "everyone"])
def test_copies_that_share_in_other_ways(tmp_path: Path, mode: str) -> None:
    splits = SplitsSpec.model_validate({"data": {"mode": mode}})
    assert_as_predicted(trained(job(GPT, GridSpec(dp=2), "1f1b").model_copy(update={"splits": splits, "steps": 3}), tmp_path))


def test_of_copies_with_a_server_the_server_has_most(tmp_path: Path) -> None:
    splits = SplitsSpec.model_validate({"data": {"mode": "parameter-server"}})
    ran = trained(job(GPT, GridSpec(dp=2), "1f1b").model_copy(update={"splits": splits, "steps": 3}), tmp_path)
    server, other = peaks(ran)
    assert [server] == [asdict(rank) for rank in predicted(ran.spec)]
    assert other == server | {"optimizer": 0}


@pytest.mark.parametrize("grid", [GridSpec(pp=2), GridSpec(tp=2), GridSpec(dp=2)], ids=["pp2", "tp2", "dp2"])
def test_layers_that_are_run_again_leave_their_input_alone(tmp_path: Path, grid: GridSpec) -> None:
    assert_as_predicted(trained(job(GPT, grid, "1f1b").model_copy(update={"checkpointing": "layer", "steps": 3}), tmp_path))


def test_stages_of_unequal_layers(tmp_path: Path) -> None:
    spec = job(DEEP, GridSpec(pp=2), "1f1b")
    cut = spec.schedule.model_copy(update={"layers": (1, spec.model.layers - 1)})
    assert_as_predicted(trained(spec.model_copy(update={"schedule": cut}), tmp_path))


PIPES = GridSpec(dp=2, pp=2)


@pytest.mark.parametrize(("mode", "schedule", "chunks", "grid"), [
    ("zero-2", "zb-h1", 1, PIPES), ("zero-2", "zb-v", 2, PIPES), ("zero-2", "interleaved-zb", 2, PIPES),
    ("zero-2", "dualpipe-v", 2, PIPES), ("zero-2", "dualpipe", 1, PIPES), ("zero-2", "dualpipe", 1, GridSpec(pp=4)),
    ("zero-2", "zb-h1", 1, GridSpec(dp=2, pp=2, tp=2)), ("zero-2", "zb-h1", 1, GridSpec(pp=2, cp=2)),
    ("zero-1", "zb-v", 2, PIPES), ("ddp", "zb-v", 2, PIPES),
], ids=str)
def test_copies_that_put_off_weights(tmp_path: Path, mode: str, schedule: str, chunks: int, grid: GridSpec) -> None:
    """Between the halves of a backward zero-2 has whole gradients of norms and embeddings, which the first one made."""
    splits = SplitsSpec.model_validate({"data": {"mode": mode}})
    spec = job(DEEP, grid, schedule, chunks=chunks, micro_batches=2 * grid.pp)
    assert_as_predicted(trained(spec.model_copy(update={"splits": splits, "steps": 2}), tmp_path))


def test_halves_of_a_backward_one_after_the_other_leave_whole_gradients_too(tmp_path: Path) -> None:
    spec = job(DEEP, PIPES, "1f1b", split=True)
    splits = SplitsSpec.model_validate({"data": {"mode": "zero-2"}})
    ran = trained(spec.model_copy(update={"splits": splits, "steps": 2}), tmp_path)
    assert_as_predicted(ran)
    whole = predicted(spec.model_copy(update={"splits": SplitsSpec()}))
    assert all(peak["gradients"] > whole[0].gradients / 2 for peak in peaks(ran)[::2]), "more than a rank's pieces"
