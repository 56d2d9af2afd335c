"""Jobs at random, most of which fit together badly, and what becomes of one whose refusals are believed.

Every field is drawn that changes what ranks do or what is planned, but for `device`: there is one here that all have. A job
says "csv" for a text that a schedule of another name makes once the rest fits; `in_own_order` also has neighbours swapped.
"""

from __future__ import annotations

import re
from itertools import count
from typing import Any

from hypothesis import strategies as st

from dashboard.runs.intake import with_changes
from trainer.complaints import FieldError, SpecError
from trainer.schedules import schedule_of
from trainer.schedules.actions import Schedule
from trainer.schedules.family import SCHEDULES
from trainer.schedules.validate import ScheduleError, validate
from trainer.spec import BetweenServers, CollectivesSpec, DataSplit, InServer, JobSpec, parse
from trainer.step_time import step_ms

MOST_ROUNDS = 20  # of believing what a refusal says would do
ENDING = ("kill", "hang")  # faults that end a run, or a life of it
MOST_STEP_MS = 300.0  # of a job that is run


def choices_of(part: Any, field: str) -> st.SearchStrategy[Any]:
    return st.sampled_from(part.model_fields[field].annotation.__args__)


def one_of(literal: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(literal.__args__)


def sometimes(common: Any, other: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.just(common), other)


sizes = st.sampled_from([1, 1, 2, 2, 3, 4])
of_gpts: dict[str, st.SearchStrategy[Any]] = {
    "layers": st.integers(1, 8), "width": st.sampled_from([8, 12, 16]), "heads": st.integers(1, 4),
    "context": st.sampled_from([4, 6, 8, 12]),
}
gpts = st.fixed_dictionaries({"name": st.just("gpt")} | of_gpts)
mixtures = st.fixed_dictionaries({"name": st.just("moe")} | of_gpts | {
    "experts": st.integers(2, 6), "top_k": st.integers(1, 3), "capacity_factor": st.sampled_from([0.1, 0.5, 1.0, 1.25, 8.0]),
    "balance": st.sampled_from([0.0, 0.01, 1.0]),
})
perceptrons = st.fixed_dictionaries({
    "name": st.just("perceptron"), "hidden_layers": st.integers(1, 6), "width": st.integers(1, 9)})
faults = st.fixed_dictionaries({
    "kind": st.sampled_from(["slow-rank", "slow-link", "lost-message", *ENDING]),
    "rank": st.one_of(st.none(), st.integers(0, 5)), "step": st.one_of(st.none(), st.integers(0, 2)),
    "factor": st.sampled_from([1.5, 4.0]), "peer": st.one_of(st.none(), st.none(), st.integers(0, 5)),
    "resend_ms": st.floats(0.1, 20.0),
})
jobs = st.fixed_dictionaries({
    "model": st.one_of(gpts, gpts, mixtures, perceptrons),
    "grid": st.fixed_dictionaries(dict.fromkeys(("dp", "pp", "cp", "tp"), sizes) | {"ep": st.sampled_from([1, 1, 1, 2])}),
    "splits": st.fixed_dictionaries({
        "data": st.fixed_dictionaries({"mode": choices_of(DataSplit, "mode"), "bucket_mb": st.sampled_from([1e-3, 25.0])}),
        "tensor": st.fixed_dictionaries({"sequence_parallel": st.booleans()}),
        "context": st.fixed_dictionaries({
            "attention": st.sampled_from(["ring", "all_to_all"]), "order": st.sampled_from(["contiguous", "zigzag"])}),
    }),
    "schedule": st.fixed_dictionaries({
        "name": st.sampled_from([*SCHEDULES, "csv"]), "micro_batches": st.integers(1, 8), "chunks": st.integers(1, 3),
        "split_backward": st.booleans(), "layers": sometimes([], st.lists(st.integers(1, 4), max_size=5)),
    }),
    "optimizer": st.fixed_dictionaries({
        "name": st.sampled_from(["sgd", "adamw"]), "learning_rate": st.floats(1e-4, 1e-1), "warmup_steps": st.integers(0, 3),
        "decay": st.sampled_from(["none", "linear", "cosine"]), "final_share": st.floats(0, 1),
        "weight_decay": st.sampled_from([0.0, 0.1]), "clip_norm": st.sampled_from([0.0, 0.5]),
    }),
    "collectives": st.fixed_dictionaries({
        name: sometimes("backend", choices_of(CollectivesSpec, name)) for name in CollectivesSpec.model_fields}),
    "links": st.fixed_dictionaries({
        "kind": st.sampled_from(["real", "modelled"]), "in_server": one_of(InServer), "in_rack": one_of(BetweenServers),
        "between_racks": one_of(BetweenServers), "ports_per_server": st.integers(1, 3),
        "slow_down": st.sampled_from([1.0, 30.0]), "size_factor": st.sampled_from([1.0, 7.5]),
    }),
    "placement": st.fixed_dictionaries({
        "gpus_per_server": st.integers(1, 5), "servers_per_rack": st.integers(1, 3),
        "servers": sometimes("", st.lists(st.integers(0, 3), min_size=1, max_size=6).map(lambda numbers: str(numbers)[1:-1])),
    }),
    "pace": st.fixed_dictionaries({
        "kind": st.sampled_from(["paced", "paced", "device", "real"]), "forward_ms": st.floats(0.01, 0.1),
        "backward_ms": st.floats(0.01, 0.1), "device": st.sampled_from(["h100", "a100", "b200"]),
        "slow_down": st.sampled_from([1.0, 1e4, 1e9]), "memory_mb": st.sampled_from([0.0, 0.01, 1e4]),
    }),
    "faults": sometimes([], st.lists(faults, max_size=3)),
    "checkpoint_every": st.sampled_from([0, 0, 1, 2]), "restarts": st.sampled_from([0, 0, 1]),
    "batch": st.integers(1, 24), "steps": st.integers(1, 3), "seed": st.integers(0, 3),
    "precision": st.sampled_from(["float32", "float64", "bf16"]), "checkpointing": st.sampled_from(["none", "layer"]),
    "name": sometimes("", st.text("aä→ ", max_size=4)), "timeout_seconds": st.sampled_from([20.0, 60.0]),
})


def refusals(job: dict[str, Any]) -> list[FieldError]:
    try:
        parse(job)
    except SpecError as error:
        return error.errors
    return []


def suggestions(error: FieldError) -> list[tuple[str, Any]]:
    """What a refusal says would do: a field, mostly the one refused, and a value for it."""
    message, field = error.message, error.field
    if re.search("an empty (one|text).* would do|an empty text for the rule", message):
        return [(field, "")]
    if re.search("without a peer it would do|none, in a job of one rank, would do", message):
        return [(field, None)]
    if found := re.search(r"([a-z_.]+) (?:of )?'?([a-z0-9]+)'? would do", message):
        value: Any = int(found[2]) if found[2].isdigit() else found[2]
        if "." in found[1]:
            return [(found[1], value)]
    if found := re.search(r"steps? (\d+) to (\d+); one of these would do|ranks (\d+) to (\d+); one of these", message):
        low, high = [int(number) for number in found.groups() if number is not None]
        return [(field, number) for number in {low, high}]
    if found := re.search(r"which is a slow-down of (\S+)$", message):
        return [(field, float(found[1]))]
    if found := re.search(r"placement.gpus_per_server of (\d+)$", message):
        return [("placement.gpus_per_server", int(found[1]))]
    found = re.search(r"([^;]+?) would do", message)
    assert found is not None, f"{error} says nothing that would do"
    text = found[1].strip()
    numbers = [int(number) for number in re.findall(r"(?<![\w'-])[0-9]+(?![\w'-])", text)]
    if field == "schedule.layers":
        return [(field, numbers)]
    if numbers:
        return [(field, number) for number in numbers]
    return [(field, {"false": False, "true": True}.get(word, word.strip("'"))) for word in re.split(", | or ", text)]


def mended(job: dict[str, Any], choose: Any) -> JobSpec:
    """The job after its refusals have been believed, one after the other; `choose` picks among what would do."""
    by_text = job["schedule"]["name"] == "csv"
    if by_text:
        job = with_changes(job, {"schedule.name": "zb-h1" if job["schedule"]["chunks"] == 1 else "breadth-first"})
    for _ in range(MOST_ROUNDS):
        errors = refusals(job)
        if not errors:
            break
        error = errors[0]
        field, value = choose(suggestions(error))
        job = changed(job, field, value)
        assert error not in refusals(job), f"{error}, and it did not"
    spec = parse(job)
    return in_own_order(spec) if by_text else spec


def changed(job: dict[str, Any], field: str, value: Any) -> dict[str, Any]:
    """`field` is as refusals name it: "faults.1.rank" is the second fault's."""
    if not field.startswith("faults."):
        return with_changes(job, {field: value})
    _, number, name = field.split(".")
    those = [dict(fault) for fault in job["faults"]]
    those[int(number)][name] = value
    return {**job, "faults": those}


def in_own_order(spec: JobSpec) -> JobSpec:
    """The same job by a text: its schedule's, with every second action one place further on where that can be run."""
    own, stages = schedule_of(spec), spec.grid.pp * spec.schedule.chunks
    turn = count(spec.seed)
    for rank, actions in enumerate(own):
        for at in range(len(actions) - 1):
            swapped = [*actions[:at], actions[at + 1], actions[at], *actions[at + 2:]]
            if next(turn) % 2 and can_run([*own[:rank], swapped, *own[rank + 1:]], stages, spec.schedule.micro_batches):
                own[rank] = actions = swapped
    order = spec.schedule.model_copy(update={"name": "csv", "csv": as_text(own)})
    return parse(spec.model_copy(update={"schedule": order}).to_json())


def can_run(schedule: Schedule, stages: int, micro_batches: int) -> bool:
    try:
        validate(schedule, stages, micro_batches)
    except ScheduleError:
        return False
    return True


def as_text(schedule: Schedule) -> str:
    return "\n".join(",".join(f"{one.stage}{one.do.value}{one.micro_batch}" for one in actions) for actions in schedule)


@st.composite
def specs(draw: st.DrawFn, most_ranks: int, without: tuple[str, ...] = ()) -> JobSpec:
    """Jobs that are accepted, of no more than so many ranks and `without` some kinds of faults."""
    def fits(job: dict[str, Any]) -> dict[str, Any]:
        return {**job, "faults": [fault for fault in job["faults"] if fault["kind"] not in without]}

    return draw(jobs.map(lambda job: mended(fits(job), lambda values: values[len(str(job)) % len(values)]))
                .filter(lambda spec: spec.ranks <= most_ranks))


def runnable(most_ranks: int) -> st.SearchStrategy[JobSpec]:
    """Jobs of several ranks that come to their end by themselves and soon: kills and hangs have tests of their own."""
    return specs(most_ranks, without=ENDING).filter(lambda spec: spec.ranks > 1 and (step_ms(spec) or 0) < MOST_STEP_MS)
