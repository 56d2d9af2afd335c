"""Any split of a model trains to the unsplit model's loss."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path

import pytest

from tests.ranks.launch import Ran, run
from tests.ranks.unsplit import assert_equals_one_process
from trainer.schedules import schedule_of
from trainer.schedules.actions import homes
from trainer.schedules.family import SCHEDULES
from trainer.spec import Gpt, GridSpec, JobSpec, OptimizerSpec, Pace, Perceptron, ScheduleSpec, parse
from trainer.trace.kinds import MODEL_WORK, Kind

pytestmark = pytest.mark.ranks

STEPS = 20
GPT = Gpt(layers=4, width=16, heads=2, context=12)
DEEP = Gpt(layers=8, width=16, heads=2, context=8)
BRISK = Pace(kind="paced", forward_ms=0.1, backward_ms=0.1)  # its class keeps hand-offs quick on a busy machine


def job(model: Gpt | Perceptron, grid: GridSpec, schedule: str, micro_batches: int = 4, split: bool = False,
        optimizer: str = "adamw", batch: int = 16, chunks: int = 1, csv: str = "", layers: tuple[int, ...] = (),
        learning_rate: float = 1e-2) -> JobSpec:
    return JobSpec.model_validate({
        "model": model, "grid": grid, "pace": BRISK, "batch": batch, "steps": STEPS,
        "precision": "float64", "seed": 3, "timeout_seconds": 30.0,
        "schedule": ScheduleSpec.model_validate({"name": schedule, "micro_batches": micro_batches, "split_backward": split,
                                                 "chunks": chunks, "csv": csv, "layers": layers}),
        "optimizer": OptimizerSpec.model_validate({"name": optimizer, "learning_rate": learning_rate}),
    })


HOLDS = {Kind.FORWARD: 1, Kind.BACKWARD: -1, Kind.BACKWARD_WEIGHT: -1}  # activations of one micro-batch in one stage


def assert_did_what_the_schedule_says(ran: Ran) -> None:
    """Every action is a span, in the schedule's order, and what goes between two ranks, but nothing else, is sent."""
    schedule, micro_batches = schedule_of(ran.spec), ran.spec.schedule.micro_batches
    for rank, actions in enumerate(schedule):
        spans = sorted((s for s in ran.of(*MODEL_WORK) if (s.rank, s.step) == (rank, 2)), key=lambda span: span.start_ns)
        assert [(span.name, span.stage) for span in spans] == [(str(action), action.stage) for action in actions]
        held = list(accumulate(HOLDS.get(span.kind, 0) for span in spans))
        assert held[-1] == 0, "what was held for a backward is gone after it"
        if ran.spec.schedule.name in SCHEDULES:
            chunks = ran.spec.schedule.chunks
            assert max(held) <= SCHEDULES[ran.spec.schedule.name].held(rank, len(schedule), micro_batches, chunks)
    home = homes(schedule)
    hops = sum(home.get((stage + 1, m), place) != place for (stage, m), place in home.items())  # of all micro-batches
    for kind in (Kind.SEND, Kind.RECEIVE):
        assert len(ran.of(kind)) == 2 * hops * ran.spec.steps * ran.spec.grid.dp


@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
@pytest.mark.parametrize("schedule", ["naive", "gpipe", "1f1b"])
def test_pipeline_of_four_stages(tmp_path: Path, schedule: str, split: bool) -> None:
    assert_equals_one_process(run(job(GPT, GridSpec(pp=4), schedule, split=split), tmp_path).check())


@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
def test_two_stages_times_two_copies(tmp_path: Path, split: bool) -> None:
    ran = run(job(GPT, GridSpec(dp=2, pp=2), "1f1b", split=split), tmp_path).check()
    assert_equals_one_process(ran)
    ran.assert_lanes_are_in_order()
    assert {rank for rank, kind, text in ran.marks if (kind, text) == ("parameters", "equal")} == {0, 1, 2, 3}


@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
@pytest.mark.parametrize(("schedule", "ranks", "micro_batches", "chunks"), [
    ("zb-h1", 4, 4, 1),
    ("interleaved", 2, 4, 2),
    ("interleaved", 2, 4, 4),
    ("breadth-first", 2, 4, 2),
    ("interleaved-zb", 2, 4, 2),
    ("zb-v", 4, 4, 2),
    ("dualpipe-v", 2, 4, 2),
    ("dualpipe-v", 4, 8, 2),
    ("interleaved", 1, 4, 2),
])
def test_every_schedule(tmp_path: Path, schedule: str, ranks: int, micro_batches: int, chunks: int, split: bool) -> None:
    spec = job(DEEP, GridSpec(pp=ranks), schedule, micro_batches, split, chunks=chunks)
    ran = run(parse(spec.to_json()), tmp_path).check()
    assert_equals_one_process(ran)
    ran.assert_lanes_are_in_order()
    assert_did_what_the_schedule_says(ran)


@pytest.mark.parametrize(("schedule", "chunks"), [("interleaved", 2), ("zb-v", 2), ("dualpipe-v", 2)])
def test_two_copies_of_ranks_with_two_stages_each(tmp_path: Path, schedule: str, chunks: int) -> None:
    ran = run(parse(job(DEEP, GridSpec(dp=2, pp=2), schedule, chunks=chunks).to_json()), tmp_path).check()
    assert_equals_one_process(ran)
    ran.assert_lanes_are_in_order()
    assert {rank for rank, kind, text in ran.marks if (kind, text) == ("parameters", "equal")} == {0, 1, 2, 3}


@pytest.mark.parametrize(("schedule", "grid", "layers", "chunks"), [
    ("1f1b", GridSpec(pp=4), (1, 1, 2, 4), 1), ("zb-h1", GridSpec(dp=2, pp=2), (6, 2), 1),
    ("zb-v", GridSpec(pp=2), (1, 3, 3, 1), 2),
])
def test_stages_cut_by_hand(tmp_path: Path, schedule: str, grid: GridSpec, layers: tuple[int, ...], chunks: int) -> None:
    ran = run(parse(job(DEEP, grid, schedule, chunks=chunks, layers=layers).to_json()), tmp_path).check()
    assert_equals_one_process(ran)
    assert_did_what_the_schedule_says(ran)


OWN = """0F0,0F1,,,3F0,3F1,(0F2;3B0)OVERLAP_F_B,3F2,0I0,0W0,3B1,0B1,3B2,0B2
,1F0,2F0,1F1,2F1,,2I0,1B0,1F2,2F2,2W0,2B1,1B1,2B2,1B2
"""


def test_a_schedule_of_ones_own(tmp_path: Path) -> None:
    spec = job(DEEP, GridSpec(pp=2), "csv", 3, batch=12, chunks=2, csv=OWN)
    ran = run(parse(spec.to_json()), tmp_path).check()
    assert_equals_one_process(ran)
    assert_did_what_the_schedule_says(ran)


@pytest.mark.parametrize("micro_batches", [1, 4])
def test_four_copies_reading_digits(tmp_path: Path, micro_batches: int) -> None:
    spec = job(Perceptron(), GridSpec(dp=4), "gpipe", micro_batches, batch=64)
    ran = run(spec, tmp_path).check()
    assert_equals_one_process(ran)
    for rank in range(4):
        for step in range(STEPS):
            reduced = [s for s in ran.of(Kind.ALL_REDUCE) if (s.rank, s.step) == (rank, step)]
            assert [s.bytes for s in reduced] == [13_002 * 8, 8], "one bucket of gradients a step, and the loss"
            assert {s.group for s in reduced} == {"dp"}


def test_perceptron_in_a_pipeline_with_plain_gradient_descent(tmp_path: Path) -> None:
    spec = job(Perceptron(hidden_layers=3), GridSpec(pp=4), "1f1b", split=True, optimizer="sgd", learning_rate=0.3)
    assert_equals_one_process(run(spec, tmp_path).check())
