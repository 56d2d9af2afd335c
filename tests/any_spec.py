"""Jobs at random, most of which fit together badly, and what becomes of one whose refusals are believed."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

from dashboard.runs.intake import with_changes
from trainer.complaints import FieldError, SpecError
from trainer.schedules.family import SCHEDULES
from trainer.spec import JobSpec, parse

MOST_ROUNDS = 12  # of believing what a refusal says would do

sizes = st.sampled_from([1, 1, 2, 2, 3, 4])
gpts = st.fixed_dictionaries({
    "name": st.just("gpt"), "layers": st.integers(1, 8), "width": st.sampled_from([8, 12, 16]),
    "heads": st.integers(1, 4), "context": st.sampled_from([4, 6, 8, 12]),
})
perceptrons = st.fixed_dictionaries({
    "name": st.just("perceptron"), "hidden_layers": st.integers(1, 6), "width": st.integers(1, 9)})
jobs = st.fixed_dictionaries({
    "model": st.one_of(gpts, gpts, perceptrons),
    "grid": st.fixed_dictionaries(dict.fromkeys(("dp", "pp", "cp", "tp"), sizes)),
    "splits": st.fixed_dictionaries({
        "tensor": st.fixed_dictionaries({"sequence_parallel": st.booleans()}),
        "context": st.fixed_dictionaries({
            "attention": st.sampled_from(["ring", "all_to_all"]), "order": st.sampled_from(["contiguous", "zigzag"])}),
    }),
    "schedule": st.fixed_dictionaries({
        "name": st.sampled_from(list(SCHEDULES)), "micro_batches": st.integers(1, 8), "chunks": st.integers(1, 3),
        "split_backward": st.booleans(), "layers": st.one_of(st.just([]), st.lists(st.integers(1, 4), max_size=5)),
    }),
    "optimizer": st.fixed_dictionaries({
        "name": st.sampled_from(["sgd", "adamw"]), "warmup_steps": st.integers(0, 3),
        "decay": st.sampled_from(["none", "linear", "cosine"]), "final_share": st.floats(0, 1),
        "weight_decay": st.sampled_from([0.0, 0.1]), "clip_norm": st.sampled_from([0.0, 0.5]),
    }),
    "pace": st.fixed_dictionaries({
        "kind": st.just("paced"), "forward_ms": st.floats(0.01, 0.1), "backward_ms": st.floats(0.01, 0.1)}),
    "batch": st.integers(1, 24), "steps": st.integers(1, 2), "seed": st.integers(0, 3),
    "precision": st.sampled_from(["float32", "float64", "bf16"]), "checkpointing": st.sampled_from(["none", "layer"]),
})


def refusals(job: dict[str, Any]) -> list[FieldError]:
    try:
        parse(job)
    except SpecError as error:
        return error.errors
    return []


def suggestions(error: FieldError) -> list[Any]:
    """The values that a refusal says would do for its field."""
    found = re.search(r"([^;]+?) would do", error.message)
    assert found is not None, f"{error} says nothing that would do"
    text = found[1].strip()
    numbers = [int(number) for number in re.findall(r"[0-9]+", text)]
    if error.field == "schedule.layers":
        return [numbers]
    if numbers:
        return numbers
    return [{"false": False, "true": True}.get(word, word.strip("'")) for word in re.split(", | or ", text)]


def mended(job: dict[str, Any], choose: Any) -> JobSpec:
    """The job after its refusals have been believed, one after the other; `choose` picks among what would do."""
    for _ in range(MOST_ROUNDS):
        errors = refusals(job)
        if not errors:
            return parse(job)
        error = errors[0]
        job = with_changes(job, {error.field: choose(suggestions(error))})
        assert error not in refusals(job), f"{error}, and it did not"
    raise AssertionError(f"{job} is refused after {MOST_ROUNDS} changes: {refusals(job)}")


@st.composite
def specs(draw: st.DrawFn, most_ranks: int) -> JobSpec:
    """Jobs that are accepted, of no more than so many ranks."""
    return draw(jobs.map(lambda job: mended(job, lambda values: values[len(str(job)) % len(values)]))
                .filter(lambda spec: spec.ranks <= most_ranks))
