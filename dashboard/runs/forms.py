"""The launch form: what it posts becomes a JobSpec's fields, and a JobSpec with complaints becomes the form again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from dashboard.runs.form_fields import MODELS, Field
from dashboard.runs.form_sections import FIELDS, SECTIONS, Section
from trainer.complaints import FieldError
from trainer.spec import JobSpec


@dataclass(frozen=True)
class Bound:
    """A field with what it shows."""

    field: Field
    value: str
    usual: str  # what it is in a job that says nothing of it
    errors: list[str]

    @property
    def id(self) -> str:
        return "f-" + self.field.name.replace(".", "-").replace("_", "-")


@dataclass(frozen=True)
class BoundSection:
    section: Section
    fields: list[Bound]

    @property
    def changed(self) -> list[str]:
        """The labels of the fields that are not as they come."""
        return [one.field.label for one in self.fields if one.value != one.usual]

    @property
    def is_open(self) -> bool:
        return bool(self.changed) or any(one.errors for one in self.fields)


def read(posted: Mapping[str, str]) -> dict[str, Any]:
    """What `trainer.spec.parse` takes, from what the form posted. Fields of other models and schedules are left out."""
    job: dict[str, Any] = {}
    kind, schedule = posted.get("model.name", ""), posted.get("schedule.name", "")
    for one in FIELDS.values():
        if one.of_model not in ("", kind) or one.schedule not in ("", schedule):
            continue
        if one.widget == "switch":
            value: Any = one.name in posted
        elif one.name in posted:
            value = one.read(posted[one.name])
        else:
            continue
        at = job
        *parents, last = one.path.split(".")
        for parent in parents:
            at = at.setdefault(parent, {})
        at[last] = value
    return job


def values_of(spec: JobSpec) -> dict[str, str]:
    """What the form shows of a job; the other kind of model shows its defaults."""
    job = spec.model_dump()
    models = {kind: (spec.model if spec.model.name == kind else made()).model_dump() for kind, made in MODELS.items()}
    shown = {}
    for one in FIELDS.values():
        at: Any = models[one.of_model] if one.of_model else job
        for part in one.name.split(".")[2 if one.of_model else 0:]:
            at = at[part]
        if one.is_json:
            items = [{key: value for key, value in item.items() if value is not None} for item in at]
            shown[one.name] = json.dumps(items) if items else ""
        elif one.widget == "list":
            shown[one.name] = ", ".join(map(str, at))
        elif one.widget != "switch":
            shown[one.name] = repr(at).removesuffix(".0") if isinstance(at, float) else str(at)
        elif at:
            shown[one.name] = "on"
    return shown


@cache
def usual_values() -> dict[str, str]:
    """What the form shows of a job that leaves everything as it comes."""
    return values_of(JobSpec())


def bound(values: Mapping[str, str], errors: list[FieldError]) -> tuple[list[BoundSection], list[FieldError]]:
    """The sections with values and complaints in their places, and the complaints that have no place."""
    placed: dict[str, list[str]] = {}
    homeless = []
    for error in errors:
        name = field_name(error.field, values.get("model.name", "gpt"))
        if name is None:
            homeless.append(error)
        else:
            where = error.field.removeprefix(name).strip(".") if name == "faults" else ""
            placed.setdefault(name, []).append(f"{where}: {error.message}" if where else error.message)
    usual = usual_values()
    sections = [
        BoundSection(section, [
            Bound(one, values.get(one.name, ""), usual.get(one.name, ""), placed.get(one.name, [])) for one in section.fields
        ])
        for section in SECTIONS
    ]
    return sections, homeless


def field_name(path: str, model: str) -> str | None:
    """The form's name for a JobSpec path, None when the form has no such field."""
    if path == "model":
        return "model.name"
    if path.startswith("faults."):
        return "faults"  # all of them are one text
    for name in (path, path.replace("model.", f"model.{model}.", 1)):
        if name in FIELDS:
            return name
    return None
