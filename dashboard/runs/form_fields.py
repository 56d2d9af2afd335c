"""A field of the launch form: JobSpec's own with words around it. Bounds and choices come from JobSpec itself."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, MaxLen
from pydantic.fields import FieldInfo

from trainer.spec import Gpt, JobSpec, Moe, Perceptron

MODELS: dict[str, type[Gpt] | type[Perceptron]] = {"gpt": Gpt, "moe": Moe, "perceptron": Perceptron}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}\Z")


def _whole(given: str) -> int | str:
    """The whole number that it is, or the text."""
    text = given.strip()
    return int(text) if _WHOLE.match(text) else text


def _json(given: str) -> Any:
    """What the text is as JSON, an empty one an empty list; or the text."""
    try:
        return json.loads(given) if given.strip() else []
    except (ValueError, RecursionError):
        return given


@dataclass(frozen=True)
class Field:
    """`name` is what the form posts: a dotted path of JobSpec, with the model's kind after `model.`."""

    name: str
    label: str
    help: str = ""
    unit: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    lines: int = 1  # of text that it shows
    schedule: str = ""  # the one that has this field; empty when every schedule has it

    @property
    def path(self) -> str:
        """The field's path in a JobSpec: `model.gpt.width` is `model.width` there."""
        parts = self.name.split(".")
        return ".".join([parts[0], *parts[2:]]) if self.of_model else self.name

    @cached_property
    def of_model(self) -> str:
        """The kind of model that has this field; empty when every job has it."""
        parts = self.name.split(".")
        return parts[1] if parts[0] == "model" and len(parts) == 3 else ""

    @cached_property
    def info(self) -> FieldInfo:
        if self.of_model:
            return MODELS[self.of_model].model_fields[self.name.rsplit(".", 1)[1]]
        fields, info = JobSpec.model_fields, None
        for part in self.name.split("."):
            info = fields[part]
            fields = getattr(info.annotation, "model_fields", {})
        assert info is not None
        return info

    @cached_property
    def widget(self) -> str:
        if self.name == "model.name" or get_origin(self.info.annotation) is Literal:
            return "choice"
        if self.info.annotation is bool:
            return "switch"
        if self.lines > 1:
            return "lines"
        if get_origin(self.info.annotation) is tuple:
            return "list"
        return "text" if self.info.annotation is str else "number"

    @property
    def is_json(self) -> bool:
        """Whether its text is JSON: a list of more than numbers."""
        return self.widget == "lines" and get_origin(self.info.annotation) is tuple

    @property
    def choices(self) -> list[tuple[str, str]]:
        values = tuple(MODELS) if self.name == "model.name" else get_args(self.info.annotation)
        return [(value, self.options.get(value, value)) for value in values]

    @property
    def bounds(self) -> dict[str, Any]:
        """Attributes of the input. A lower bound that is itself too low is left to the server's message."""
        found: dict[str, Any] = {}
        for bound in self.info.metadata:
            if isinstance(bound, Ge):
                found["min"] = bound.ge
            elif isinstance(bound, Gt):
                found["min"] = bound.gt
            elif isinstance(bound, Le):
                found["max"] = bound.le
            elif isinstance(bound, MaxLen) and get_origin(self.info.annotation) is not tuple:
                found["maxlength"] = bound.max_length
        if self.widget == "number":
            found["step"] = 1 if self.info.annotation is int else "any"
        return found

    def read(self, given: str) -> Any:
        """The value a JobSpec takes; text that is no number stays text, so that the complaint can show it."""
        if self.is_json:
            return _json(given)
        if self.widget == "lines":
            return given.replace("\r\n", "\n")  # browsers send the former
        if self.widget == "list":
            return [_whole(part) for part in given.split(",")] if given.strip() else []
        if self.widget != "number":
            return given
        text = _whole(given)
        if isinstance(text, int):
            return text
        if self.info.annotation is float:
            try:
                return float(text)
            except ValueError:
                return text
        return text
