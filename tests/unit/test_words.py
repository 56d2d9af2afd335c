"""What a job's grid is called."""

import pytest

from dashboard.runs.words import (
    collectives_words,
    copies_words,
    faults_words,
    grid_words,
    milliseconds,
    model_words,
    percent,
    recipe_words,
    splits_words,
)
from trainer.emulate.orders import Fault
from trainer.presets import preset
from trainer.spec import parse


@pytest.mark.parametrize("key, grid, splits", [
    ("pipeline-x-data", "2 stages × 2 copies", ""),
    ("pipeline-dualpipe", "4 stages both ways", ""),
    ("three-axes", "2 stages × 2 copies × 2 tensor slices", "tensors"),
    ("experts-x-data", "2 copies × 2 expert parts", "the experts, 4 of each layer on a rank"),
    ("ring-attention", "4 context parts", "the sequence in zigzag order, attention over a ring"),
])
def test_axes_and_splits_in_words(key, grid, splits):
    spec = preset(key).spec.model_dump()
    assert (grid_words(spec), splits_words(spec)) == (grid, splits)


def test_both_splits_at_once():
    splits = {"tensor": {"sequence_parallel": True}, "context": {"attention": "all_to_all"}}
    assert splits_words(parse({"grid": {"tp": 2, "cp": 2}, "splits": splits}).model_dump()) == (
        "tensors, between them the sequence; the sequence in contiguous order, attention by all-to-all"
    )


@pytest.mark.parametrize("given, words", [
    ({"grid": {"dp": 2}}, "gradients averaged by AllReduce (DDP)"),
    ({"grid": {"pp": 2}}, ""),
    ({"grid": {"pp": 2}, "schedule": {"name": "dualpipe"}}, "gradients averaged by AllReduce (DDP)"),
    ({"grid": {"cp": 2}, "splits": {"data": {"mode": "zero-1"}}}, "optimizer state in parts (ZeRO-1)"),
    ({"grid": {"tp": 2}, "splits": {"data": {"mode": "zero-1"}}}, ""),
])
def test_what_copies_do(given, words):
    assert copies_words(parse(given).model_dump()) == words


@pytest.mark.parametrize("given, words", [
    ({"name": "gpt"}, "GPT, 4 layers of width 32, 4 heads, context 32"),
    ({"name": "moe", "balance": 0}, "GPT with experts, 4 layers of width 32, 4 heads, context 32; "
                                    "8 experts a layer, 2 a token, capacity factor 1.25, balance 0"),
    ({"name": "perceptron"}, "perceptron, 2 hidden layers of 16"),
])
def test_a_model_in_words(given, words):
    assert model_words(parse({"model": given}).model_dump()["model"]) == words


def test_a_recipe_in_words():
    plain, full = parse({}), parse({"optimizer": {
        "name": "sgd", "learning_rate": 0.01, "warmup_steps": 5, "decay": "cosine", "final_share": 0.05, "weight_decay": 0.1,
        "clip_norm": 1,
    }})
    assert recipe_words(plain.model_dump()) == "AdamW at 0.003"
    assert recipe_words(full.model_dump()) == (
        "SGD at 0.01, 5 steps of warm-up, cosine decay to 5.0 %, weight decay 0.1, gradients clipped to 1"
    )


def test_collectives_of_one_algorithm_are_named_together():
    chosen = {"all_reduce": "ring", "all_gather": "auto", "all_to_all": "auto", "broadcast": "backend"}
    assert collectives_words({"collectives": chosen}) == "all-reduce by ring; all-gather, all-to-all by whichever is quickest"


@pytest.mark.parametrize(("fault", "words"), [
    ({"kind": "slow-rank", "rank": 2, "step": 8, "factor": 1.5}, "rank 2 takes 1.5 times as long from step 8 on"),
    ({"kind": "slow-link", "rank": 1}, "messages between rank 1 and others take 2 times as long from a step on"),
    ({"kind": "slow-link", "rank": 1, "peer": 2, "step": 3},
     "messages between rank 1 and rank 2 take 2 times as long from step 3 on"),
    ({"kind": "lost-message", "step": 4}, "a message of a rank is lost in step 4"),
    ({"kind": "kill", "rank": 0, "step": 4}, "rank 0 is killed in step 4"),
    ({"kind": "hang", "rank": 0, "step": 4}, "rank 0 hangs in step 4"),
])
def test_faults_in_words(fault, words):
    assert faults_words([Fault(**fault).model_dump()] * 2) == f"{words}; {words}"


def test_one_rank():
    assert grid_words(parse({}).model_dump()) == "1 rank"


@pytest.mark.parametrize(("given", "words"), [
    (0.0312, "31.2 µs"), (0.9994, "999 µs"), (0.9996, "1.00 ms"), (6.0234, "6.02 ms"), (67.87, "67.9 ms"), (99.96, "100 ms"),
    (676.9, "677 ms"), (1234.0, "1.23 s"),
])
def test_milliseconds_have_three_figures_that_count(given, words):
    assert milliseconds(given) == words


def test_a_negative_share_has_a_true_minus():
    assert percent(-0.0144) == "−1.4 %"
