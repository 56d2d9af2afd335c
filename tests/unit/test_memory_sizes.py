"""Sizes of models and of their training, as the texts give them."""

from fractions import Fraction

import pytest

from trainer.memory import predicted
from trainer.memory.sizes import (
    GPT_3,
    bytes_per_parameter,
    kv_cache_bytes,
    logits_bytes,
    perceptron_parameters,
    score_grid_bytes,
)
from trainer.presets import PRESETS
from trainer.spec import DataSplit, Gpt, GridSpec, JobSpec, OptimizerSpec, Perceptron, ScheduleSpec, SplitsSpec


def test_the_perceptron():
    assert perceptron_parameters(784, 16, 16, 10) == (12_960, 42)


def test_gpt_3_part_by_part():
    assert (GPT_3.token_embedding, GPT_3.position_embedding) == (617_558_016, 25_165_824)
    assert (GPT_3.attention, GPT_3.feed_forward, GPT_3.norms) == (603_979_776, 1_207_959_552, 49_152)
    assert round(GPT_3.parameters / 1e9) == 175
    assert 345e9 < 2 * GPT_3.parameters < 350e9, "in two bytes a parameter, which takes five cards of 80 GB"


def test_gpt_3s_cache_of_keys_and_values():
    assert kv_cache_bytes(GPT_3, tokens=2048) == 9_663_676_416


@pytest.mark.parametrize("copies", [1, 2, 64])
def test_bytes_a_parameter_in_mixed_precision(copies):
    n = Fraction(copies)
    assert bytes_per_parameter("ddp", copies) == 16
    assert bytes_per_parameter("zero-1", copies) == 4 + 12 / n
    assert bytes_per_parameter("zero-2", copies) == 2 + 14 / n
    assert bytes_per_parameter("zero-3", copies) == 16 / n


def test_one_wall_grows_with_tokens_the_other_with_their_square():
    assert logits_bytes(4, 2048, 50_257, 2) == 2 * logits_bytes(4, 1024, 50_257, 2) == 823_410_688
    assert score_grid_bytes(1, 96, 4096, 2) == 4 * score_grid_bytes(1, 96, 2048, 2)


def one_rank(**fields):
    return predicted(JobSpec(schedule=ScheduleSpec(micro_batches=1), **fields))[0]


def test_weights_gradients_and_two_moments_are_four_times_the_parameters():
    held = one_rank(model=Perceptron())
    assert held.weights == held.gradients == 13_002 * 4
    assert held.optimizer == 2 * 13_002 * 4 + 6 * 4, "and a count of steps for each of six tensors"
    assert one_rank(model=Perceptron(), optimizer=OptimizerSpec(name="sgd")).optimizer == 0


def test_stages_and_slices_make_up_the_model():
    whole = one_rank(model=Gpt(layers=8)).weights
    staged = predicted(JobSpec(model=Gpt(layers=8), grid=GridSpec(pp=4)))
    assert sum(rank.weights for rank in staged) == whole
    sliced = predicted(JobSpec(model=Gpt(layers=8), grid=GridSpec(tp=4)))[0]
    assert whole / 4 < sliced.weights < whole / 2, "norms, places and some biases are whole on every rank"


def test_two_moments_and_activations_of_twice_the_precision_are_twice_as_large():
    single, double = one_rank(), one_rank(precision="float64")
    assert double.weights == 2 * single.weights and double.activations == 2 * single.activations


def test_gpipe_holds_all_micro_batches_and_1f1b_as_many_as_there_are_stages():
    def held(schedule, micro_batches):
        spec = JobSpec(grid=GridSpec(pp=4), schedule=ScheduleSpec(name=schedule, micro_batches=micro_batches),
                       batch=micro_batches)
        return [rank.activations for rank in predicted(spec)]

    assert held("gpipe", 64) == [8 * size for size in held("gpipe", 8)]
    assert held("1f1b", 64) == held("1f1b", 8)
    assert [full / size for full, size in zip(held("gpipe", 12), held("1f1b", 12), strict=True)] == [3, 4, 6, 12]


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "interleaved"])
def test_a_step_too_long_to_go_through_is_bounded(schedule):
    spec = JobSpec.model_validate({
        "model": {"name": "gpt", "layers": 64}, "grid": {"pp": 16}, "batch": 4096,
        "schedule": {"name": schedule, "micro_batches": 4096, "chunks": 4 if schedule == "interleaved" else 1},
    })
    short = spec.model_copy(update={"batch": 64, "schedule": spec.schedule.model_copy(update={"micro_batches": 64})})
    times = 64 if schedule == "gpipe" else 1
    for bound, exact in zip(predicted(spec), predicted(short), strict=True):
        assert times * exact.activations <= bound.activations <= 1.6 * times * exact.activations


def test_put_off_weights_cost_zero_2_the_whole_gradients_of_norms_and_embeddings():
    def gradients(mode, schedule, micro_batches=8):
        spec = JobSpec.model_validate({
            "model": {"name": "gpt", "layers": 4, "width": 16, "heads": 2, "context": 8}, "grid": {"dp": 2, "pp": 2},
            "schedule": {"name": schedule, "micro_batches": micro_batches}, "batch": 2 * micro_batches,
            "splits": {"data": {"mode": mode}}})
        return [rank.gradients for rank in predicted(spec)]

    norms, embedding, head_norm = 4 * 2 * 2 * 16, 4 * (256 + 8) * 16, 4 * 2 * 16
    beside = [2 * norms + embedding, 2 * norms + head_norm]
    pieces = gradients("zero-2", "1f1b")
    assert gradients("zero-2", "zb-h1") == [one + more for one, more in zip(pieces, beside, strict=True)]
    assert gradients("zero-2", "zb-h1", 4096) == gradients("zero-2", "zb-h1"), "of a step too long to go through, the bound"
    assert gradients("zero-1", "zb-h1") == gradients("zero-1", "1f1b") == [2 * one for one in pieces]


@pytest.mark.parametrize("mode", ["ddp", "zero-1", "zero-2", "zero-3"])
def test_copies_share_out_what_their_mode_says(mode):
    spec = JobSpec(model=Gpt(layers=8, width=64), grid=GridSpec(dp=4))
    whole = predicted(spec)[0]
    (held,) = predicted(spec.model_copy(update={"splits": SplitsSpec(data=DataSplit(mode=mode))}))
    counts = 4 * (2 + 8 * 12 + 4)  # of steps, one for each tensor
    pieces = held.weights if mode in ("zero-1", "zero-2") else 0  # beside the whole parameters, which are a buffer
    states = (whole.weights if pieces else held.weights) + held.gradients + held.optimizer - counts
    assert states == 4 * whole.weights * bytes_per_parameter(mode, 4, 4, 4, 8) / 16
    assert pieces in (0, whole.weights / 4)
    beside = whole.buffers - held.buffers
    assert beside == (whole.gradients if mode == "zero-3" else 0), "DDP has its buckets, zero-1 and zero-2 whole parameters"


@pytest.mark.parametrize("key", PRESETS)
def test_every_preset_has_a_prediction(key):
    spec = PRESETS[key].spec
    ranks = predicted(spec)
    if spec.model.name == "moe" or spec.precision == "bf16":
        assert ranks == []
        return
    assert len(ranks) == spec.grid.pp and all(rank.weights and rank.activations for rank in ranks)
