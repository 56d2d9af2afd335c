"""What a job's grid is called."""

import pytest

from dashboard.runs.words import copies_words, grid_words, model_words, recipe_words, splits_words
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
    assert recipe_words(plain.model_dump()) == "adamw at 0.003"
    assert recipe_words(full.model_dump()) == (
        "sgd at 0.01, 5 steps of warm-up, cosine decay to 5.0 %, weight decay 0.1, gradients clipped to 1"
    )


def test_one_rank():
    assert grid_words(parse({}).model_dump()) == "1 rank"
