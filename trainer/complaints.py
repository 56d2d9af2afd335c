"""What is wrong with a JobSpec, said so that a person can mend it: field, what was given, what would do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import ValidationError


@dataclass(frozen=True)
class FieldError:
    """`field` is a dotted path such as `grid.pp`; empty when the whole is at fault."""

    field: str
    given: Any
    message: str

    def __str__(self) -> str:
        if not self.field:
            return self.message
        return f"{self.field}: {_shown(self.given)} was given: {self.message}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"given": _shown(self.given)}


class SpecError(ValueError):
    def __init__(self, errors: list[FieldError]):
        self.errors = errors
        super().__init__("\n".join(map(str, errors)))


def choices(values: Iterable[object]) -> str:
    """"1, 2 or 4"."""
    *others, last = map(str, values)
    return ", ".join(others) + f" or {last}" if others else last


def from_pydantic(error: ValidationError) -> list[FieldError]:
    return [_translated(item) for item in error.errors()]


def _translated(item: Any) -> FieldError:
    path = [str(part) for part in item["loc"]]
    if path[0] != "faults":  # of a list of numbers one does not say which is wrong
        path = [part for part in path if not part.isdigit()]
    if path[:1] == ["model"] and len(path) > 1 and path[1] in ("perceptron", "gpt", "moe"):
        del path[1]  # pydantic names the chosen model inside the path; people do not write it
    return FieldError(".".join(path), item["input"], _message(item, path))


def _message(item: Any, path: list[str]) -> str:
    context = item.get("ctx", {})
    match item["type"]:
        case "extra_forbidden":
            return "there is no such field; check its spelling or leave it out"
        case "finite_number":
            return "a finite number would do"
        case "int_type" | "int_from_float":
            return "a whole number would do"
        case "float_type":
            return "a number would do"
        case "missing":
            return f"it has no {path[-1]}; one would do, such as {{\"kind\": \"slow-rank\", \"rank\": 1, \"factor\": 2}}"
        case "tuple_type" | "model_type" if path[0] == "faults":
            return 'a list of faults would do, such as [{"kind": "slow-rank", "rank": 1, "step": 5, "factor": 2}]'
        case "tuple_type":
            return "a list of whole numbers would do, such as [1, 2, 1]"
        case "literal_error" | "union_tag_invalid":
            return f"{context.get('expected') or context.get('expected_tags')} would do"
        case "union_tag_not_found":
            return 'a model has a name: {"name": "gpt"}, {"name": "moe"} or {"name": "perceptron"} would do'
        case "greater_than_equal":
            return f"{context['ge']} or more would do"
        case "greater_than":
            return f"more than {context['gt']} would do"
        case "less_than_equal":
            return f"{context['le']} or less would do"
        case "string_too_long":
            return f"at most {context['max_length']} characters would do"
        case "too_long":
            return f"at most {context['max_length']} of them would do"
        case _:
            return item["msg"][0].lower() + item["msg"][1:]


def _shown(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 80 else text[:77] + "…"
