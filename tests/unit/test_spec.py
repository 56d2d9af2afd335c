"""A JobSpec is refused before anything starts, with the field, what was given, and what would do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainer.complaints import SpecError
from trainer.emulate.durations import durations_ms
from trainer.presets import PRESETS, preset
from trainer.schedules import schedule_of
from trainer.schedules.actions import Do
from trainer.schedules.theory import bubble_share
from trainer.schedules.validate import validate
from trainer.spec import JobSpec, parse


def complaint(given: Any) -> tuple[str, str]:
    """Field and message of the one thing that is wrong with it."""
    with pytest.raises(SpecError) as error:
        parse(given)
    assert len(error.value.errors) == 1, str(error.value)
    return error.value.errors[0].field, error.value.errors[0].message


def of(name: str, pp: int = 4, layers: int = 16, **schedule: Any) -> dict[str, Any]:
    return {"model": {"name": "gpt", "layers": layers}, "grid": {"pp": pp}, "batch": 96,
            "schedule": {"name": name, "chunks": 2} | schedule}


def moe(ep: int = 1, dp: int = 1, tp: int = 1, **model: Any) -> dict[str, Any]:
    return {"model": {"name": "moe"} | model, "grid": {"ep": ep, "dp": dp, "tp": tp}, "batch": 48 if ep == 3 else 64}


def test_an_empty_job_is_a_whole_one() -> None:
    spec = parse({})
    assert spec == JobSpec()
    assert (spec.ranks, spec.data, spec.micro_batch_samples) == (1, "text", 4)


def test_a_job_comes_back_from_its_json() -> None:
    for item in PRESETS.values():
        assert parse(item.spec.to_json()) == item.spec
        assert parse(json.loads(item.spec.to_json())) == item.spec


@pytest.mark.parametrize(("given", "field", "message"), [
    ("{", "", "this is not JSON"),
    (b"\xff", "", "this is not JSON"),
    ("[" * 100_000, "", "this is not JSON"),
    ("[1]", "", "a job is a JSON object"),
    ('{"optimizer": {"learning_rate": NaN}}', "", "NaN is not a number a job can use"),
    ({"optimizer": {"learning_rate": float("inf")}}, "optimizer.learning_rate", "a finite number would do"),
    ({"stepps": 3}, "stepps", "there is no such field"),
    ({"model": {"name": "gpt", "depth": 3}}, "model.depth", "there is no such field"),
    ({"model": {"name": "llama"}}, "model", "would do"),
    ({"model": {"layers": 3}}, "model", "a model has a name"),
    ({"steps": "30"}, "steps", "a whole number would do"),
    ({"steps": 3.5}, "steps", "a whole number would do"),
    ({"steps": 0}, "steps", "1 or more would do"),
    ({"steps": True}, "steps", "a whole number would do"),
    ({"batch": 2**30}, "batch", "1048576 or less would do"),
    ({"optimizer": {"learning_rate": 0}}, "optimizer.learning_rate", "more than 0.0 would do"),
    ({"schedule": {"name": "zigzag"}}, "schedule.name", "'dualpipe-v', 'dualpipe' or 'csv' would do"),
    ({"name": "x" * 121}, "name", "at most 120 characters would do"),
    ({"grid": {"pp": 3}}, "grid.pp", "4 layers do not divide into 3 stages; 1, 2 or 4 would do, "
                               "or the cuts 2, 1, 1 (schedule.layers)"),
    ({"grid": {"pp": 8}}, "grid.pp", "4 layers do not divide into 8 stages; 1, 2 or 4 would do"),
    ({"grid": {"ep": 2}}, "grid.ep", "this model has no experts; 1 would do, or the model 'moe'"),
    (moe(ep=3), "grid.ep", "8 experts do not divide among 3 ranks; 1, 2, 4 or 8 would do"),
    (moe(experts=4, top_k=5), "model.top_k", "there are 4 experts; 4 or less would do"),
    (moe(experts=64, layers=4), "model.experts",
     "64 in each of 4 layers are more than 128; 32 or less would do, or fewer layers"),
    (moe(experts=2, layers=65), "model.layers", "2 in each of 65 layers are more than 128; 64 or less would do"),
    (moe(balance=-1), "model.balance", "0.0 or more would do"),
    (moe(capacity_factor=0), "model.capacity_factor", "more than 0.0 would do"),
    (moe(depth=3), "model.depth", "there is no such field"),
    (moe(ep=2, tp=2) | {"splits": {"tensor": {"sequence_parallel": True}}}, "splits.tensor.sequence_parallel",
     "a router needs whole sequences, not the stretch of a tensor slice; false would do"),
    (moe(ep=2, dp=2) | {"batch": 40}, "batch", "4 copies × 8 micro-batches do not divide a batch of 40; 32 or 64 would do"),
    ({"grid": {"tp": 3}}, "grid.tp", "4 heads and 256 bytes of the vocabulary and 128 features of the feed-forward do not divide "
                                     "among 3 ranks; 1, 2 or 4 would do"),
    ({"grid": {"tp": 8}}, "grid.tp", "4 heads do not divide among 8 ranks; 1, 2 or 4 would do"),
    ({"model": {"name": "gpt", "heads": 6, "width": 48}, "grid": {"tp": 6}}, "grid.tp", "256 bytes of the vocabulary"),
    ({"model": {"name": "gpt", "context": 18}, "grid": {"tp": 4}, "splits": {"tensor": {"sequence_parallel": True}}},
     "splits.tensor.sequence_parallel", "18 tokens of a sequence do not divide among 4 ranks; false would do, "
                                        "or a context that is a multiple of 4"),
    ({"model": {"name": "gpt", "context": 24}, "grid": {"tp": 4, "cp": 4}, "splits": {"tensor": {"sequence_parallel": True}}},
     "splits.tensor.sequence_parallel", "a multiple of 16"),
    ({"grid": {"cp": 3}}, "grid.cp", "a context of 32 does not divide among 3 ranks; 1, 2, 4, 8, 16 or 32 would do"),
    ({"grid": {"cp": 32}, "splits": {"context": {"order": "zigzag"}}}, "grid.cp",
     "does not divide among 32 ranks, two pieces each; 1, 2, 4, 8 or 16 would do"),
    ({"grid": {"cp": 2}, "splits": {"context": {"attention": "all_to_all", "order": "zigzag"}}}, "splits.context.order",
     "'contiguous' would do"),
    ({"grid": {"cp": 4, "tp": 2}, "splits": {"context": {"attention": "all_to_all"}}}, "splits.context.attention",
     "2 heads do not divide among 4 ranks; 'ring' would do, or a grid.cp of 1 or 2"),
    ({"splits": {"context": {"attention": "tree"}}}, "splits.context.attention", "'ring' or 'all_to_all' would do"),
    ({"splits": {"data": {"mode": "zero-4"}}}, "splits.data.mode", "'parameter-server' or 'everyone' would do"),
    ({"splits": {"data": {"bucket_mb": 0}}}, "splits.data.bucket_mb", "more than 0.0 would do"),
    (of("zb-h1", chunks=1) | {"grid": {"pp": 4, "dp": 2}, "splits": {"data": {"mode": "zero-3"}}}, "splits.data.mode",
     "zero-2 would do, or a schedule of whole backwards"),
    (of("csv", pp=1, chunks=1, micro_batches=1, csv="0F0,0I0,0W0") | {"grid": {"dp": 2}, "splits": {"data": {"mode": "zero-3"}}},
     "splits.data.mode", "zero-2 would do"),
    ({"model": {"name": "perceptron"}, "grid": {"tp": 2}}, "grid.tp", "a perceptron has no heads and no sequence; 1 would do"),
    ({"model": {"name": "perceptron"}, "grid": {"cp": 2}}, "grid.cp", "a perceptron has no heads and no sequence; 1 would do"),
    ({"schedule": {"layers": 4}}, "schedule.layers", "a list of whole numbers would do, such as [1, 2, 1]"),
    ({"schedule": {"layers": [1, "2"]}}, "schedule.layers", "a whole number would do"),
    ({"schedule": {"layers": [5]}}, "schedule.layers", "of 4 layers 5; 4 would do"),
    ({"schedule": {"layers": [1, 2, 2]}, "grid": {"pp": 2}}, "schedule.layers",
     "of 2 stages it names 3 and of 4 layers 5; 2, 2 would do"),
    ({"schedule": {"layers": [1, 1, 1, 1, 1]}, "grid": {"pp": 5}}, "grid.pp",
     "4 layers do not divide into 5 stages; 1, 2 or 4 would do"),
    ({"steps": 5, "optimizer": {"warmup_steps": 5}}, "optimizer.warmup_steps", "4 or less would do"),
    ({"precision": "fp8"}, "precision", "'float32', 'float64' or 'bf16' would do"),
    ({"batch": 30}, "batch", "1 copy × 8 micro-batches do not divide a batch of 30; 24 or 32 would do"),
    ({"batch": 4}, "batch", "1 copy × 8 micro-batches do not divide a batch of 4; 8 would do"),
    ({"model": {"name": "gpt", "heads": 3}}, "model.heads", "3 heads do not divide a width of 32; 1, 2, 4, 8, 16 or 32 would do"),
    (of("interleaved", chunks=1), "schedule.chunks", "under interleaved a rank holds 2 to 16 stages; 2 to 16 would do"),
    (of("1f1b", chunks=2), "schedule.chunks", "under 1f1b a rank holds 1 stage; 1 would do"),
    (of("zb-v", chunks=4), "schedule.chunks", "under zb-v a rank holds 2 stages; 2 would do"),
    (of("interleaved", micro_batches=6), "schedule.micro_batches", "in groups of as many as there are ranks, 4; 4 or 8 would do"),
    (of("interleaved-zb", micro_batches=2), "schedule.micro_batches", "as many as there are ranks, 4; 4 would do"),
    (of("dualpipe-v", micro_batches=6), "schedule.micro_batches", "2 micro-batches for each of 4 ranks; 8 or more would do"),
    (of("dualpipe", chunks=1, micro_batches=6), "schedule.micro_batches",
     "2 micro-batches for each of 4 ranks; 8 or more would do"),
    (of("dualpipe", chunks=1, micro_batches=9) | {"batch": 90}, "schedule.micro_batches",
     "half of the micro-batches go each way; 8 or 10 would do"),
    (of("dualpipe", chunks=2), "schedule.chunks", "under dualpipe a rank holds 1 stage of each copy; 1 would do"),
    (of("dualpipe", chunks=1, pp=3, layers=6), "grid.pp", "enter at both ends of an even number of ranks; 2 or 4 would do"),
    (of("dualpipe", chunks=1, pp=1), "grid.pp", "an even number of ranks; 2 would do"),
    (of("dualpipe", chunks=1, pp=4, layers=6), "grid.pp", "6 layers do not divide into 4 stages; 2 or 6 would do"),
    (of("dualpipe", chunks=1, pp=2, layers=3), "model.layers", "3 layers do not divide into 2 stages; 2 or 4 would do"),
    (of("dualpipe", chunks=1, pp=2) | {"splits": {"data": {"mode": "zero-3"}}}, "splits.data.mode", "zero-2 would do"),
    (of("interleaved", layers=12), "grid.pp", "12 layers do not divide into 4 × 2 stages; 1, 2, 3 or 6 would do"),
    (of("zb-v", layers=9), "model.layers", "9 layers do not divide into 4 × 2 stages; 8 or 16 would do, "
                                           "or the cuts 2, 1, 1, 1, 1, 1, 1, 1 (schedule.layers)"),
    (of("interleaved", layers=9, chunks=4), "schedule.chunks", "9 layers do not divide into 4 × 4 stages; 3 or 9 would do"),
    (of("zb-v", pp=1000, layers=95, micro_batches=1), "model.layers", "94 or 96 would do"),
    ({"model": {"name": "perceptron"}} | {"grid": {"pp": 2}, "schedule": {"name": "zb-v", "chunks": 2}}, "model.hidden_layers",
     "with the last one 3 layers do not divide into 2 × 2 stages; 3 would do"),
    (of("zb-v") | {"device": "cuda"}, "device", "cpu would do, or the schedule naive, gpipe, 1f1b or zb-h1"),
    (of("gpipe", chunks=1, csv="0F0"), "schedule.csv", "only the schedule csv has a text; an empty one would do"),
    (of("csv", pp=1, chunks=1), "schedule.csv", "it has 0 rows, and the pipeline has 1 ranks; a row for each would do"),
    (of("csv", pp=1, micro_batches=1, csv="0F0,1F0,0B0,1B0"), "schedule.csv", "rank 0, row 2, B0"),
    (of("csv", pp=1, micro_batches=1, csv="0F0,1F0,1X0"), "schedule.csv", "rank 0, cell 2, '1X0': an action is"),
    (of("csv", pp=2, micro_batches=1, csv="0F0,1F0,2F0,0B0,1B0,2B0\n3F0,3B0"), "schedule.csv", "each waits for another"),
    (of("csv", pp=2, micro_batches=1, csv="0F0,1F0,2F0,2B0,1B0,0B0\n3F0,3B0"), "schedule.csv",
     "rank 0 has stages 0, 1, 2; 2 of them would do, as schedule.chunks says"),
    (of("csv", pp=2, micro_batches=1, chunks=1, csv="1F0,1B0,0B0\n0F0"), "schedule.csv", "rank 0, row 2, B0"),
])
def test_what_cannot_work_says_what_would(given: Any, field: str, message: str) -> None:
    found_field, found_message = complaint(given)
    assert found_field == field
    assert message in found_message


def test_how_an_axis_of_one_rank_would_be_split_has_no_effect() -> None:
    splits = {"tensor": {"sequence_parallel": True}, "context": {"attention": "all_to_all", "order": "zigzag"}}
    assert parse({"splits": splits, "model": {"name": "gpt", "context": 31}}).sequence_parts == 1


@pytest.mark.parametrize("given", [
    {"grid": {"pp": 4}}, {"grid": {"pp": 4, "dp": 2}, "splits": {"data": {"mode": "zero-2"}}},
], ids=["one copy", "zero-2"])
def test_weights_may_be_put_off_where_they_stay(given: dict[str, Any]) -> None:
    parse(of("zb-h1", chunks=1) | {"splits": {"data": {"mode": "zero-3"}}} | given)


def test_every_fault_is_named_at_once() -> None:
    with pytest.raises(SpecError) as error:
        parse({"steps": 0, "batch": "many", "speed": 9})
    assert {item.field for item in error.value.errors} == {"steps", "batch", "speed"}
    assert "steps: 0 was given: 1 or more would do" in str(error.value)


def test_a_whole_number_is_a_fit_value_where_any_number_is() -> None:
    assert parse({"timeout_seconds": 30}).timeout_seconds == 30.0


@pytest.mark.parametrize("key", PRESETS)
def test_every_preset_can_be_run(key: str) -> None:
    spec = preset(key).spec
    assert preset(key).title and preset(key).shows
    validate(schedule_of(parse(spec.to_json())), spec.grid.pp * spec.schedule.chunks, spec.schedule.micro_batches,
             copies=spec.ways)


@pytest.mark.parametrize("key", PRESETS)
def test_a_preset_is_over_before_one_looks_away(key: str) -> None:
    spec = PRESETS[key].spec
    lasts_ms = durations_ms(spec)
    work_ms = spec.schedule.micro_batches * (lasts_ms[Do.FORWARD] + lasts_ms[Do.BACKWARD])
    assert spec.steps * work_ms / (1 - bubble_share(spec)) < 35_000, "and a few seconds to start"


def test_an_unknown_preset_names_those_there_are() -> None:
    with pytest.raises(SpecError, match=r"there is no such preset; pipeline-1f1b, .* would do"):
        preset("pipeline-2f2b")
