"""The same job under every other schedule: those that fit it as they are, and why others do not."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.runs.intake import beyond_host
from dashboard.runs.words import SCHEDULES
from trainer.complaints import FieldError, SpecError, choices
from trainer.schedules.family import SCHEDULES as FAMILIES
from trainer.spec import JobSpec, parse


@dataclass(frozen=True)
class Variant:
    name: str
    words: str
    spec: JobSpec | None  # None when the job does not fit
    why_not: str = ""


def variants(spec: JobSpec) -> list[Variant]:
    """Empty for a job without a pipeline: nothing in it has an order to choose."""
    if spec.grid.pp == 1:
        return []
    return [_variant(spec, name) for name in FAMILIES if name != spec.schedule.name]


def variant(spec: JobSpec, name: str) -> JobSpec:
    """`spec` under schedule `name`, or a SpecError."""
    found = {one.name: one for one in variants(spec)}
    if name not in found:
        raise SpecError([FieldError("schedule", name, f"{choices(found)} would do" if found else "this job has no pipeline")])
    one = found[name]
    if one.spec is None:
        raise SpecError([FieldError("schedule", name, one.why_not)])
    return one.spec


def _variant(spec: JobSpec, name: str) -> Variant:
    """With as many stages a rank as before where the schedule takes them, else as few as it asks for."""
    family = FAMILIES[name]
    fits = family.fewest_chunks <= spec.schedule.chunks <= family.most_chunks
    job = spec.model_dump()
    job["schedule"] |= {"name": name, "chunks": spec.schedule.chunks if fits else family.fewest_chunks, "csv": ""}
    words = SCHEDULES[name]
    job["name"] = f"{spec.name} · {words}"[:120] if spec.name else ""
    try:
        found = parse(job)
    except SpecError as error:
        return Variant(name, words, None, "; ".join(one.message for one in error.errors))
    complaints = beyond_host(found)
    return Variant(name, words, None, complaints[0].message) if complaints else Variant(name, words, found)
