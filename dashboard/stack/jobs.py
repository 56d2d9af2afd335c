"""From what was typed behind `manage.py launch` to a JobSpec."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dashboard.runs.intake import as_value, checked, with_changes
from trainer.complaints import FieldError, SpecError
from trainer.presets import PRESETS, preset
from trainer.spec import JobSpec


def read_spec(what: str, changes: list[str]) -> JobSpec:
    """The preset or file `what` (`-` for standard input), changed by `a.b=c`. Raises SpecError."""
    return checked(with_changes(_load(what), dict(map(_change, changes))))


def _load(what: str) -> dict[str, Any]:
    if what in PRESETS:
        return PRESETS[what].spec.model_dump()
    if what == "-":
        return _object_in(sys.stdin.read, "standard input")
    path = Path(what)
    if path.is_file():
        return _object_in(path.read_text, what)
    if path.suffix or len(path.parts) > 1:
        raise SpecError([FieldError("file", what, "there is no such file")])
    return preset(what).spec.model_dump()  # says which presets there are


def _object_in(read: Callable[[], str], where: str) -> dict[str, Any]:
    """The JSON object there; not checked yet, since changes to it may follow."""
    try:
        given = json.loads(read())
    except (ValueError, RecursionError, OSError) as error:
        raise SpecError([FieldError("", None, f"{where} is not JSON: {error}")]) from None
    if not isinstance(given, dict):
        raise SpecError([FieldError("", given, f'{where} holds no JSON object; {{"steps": 30}} would do')])
    return given


def _change(text: str) -> tuple[str, Any]:
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise SpecError([FieldError("--set", text, "a field and its value would do, as in --set grid.pp=2")])
    return path, as_value(value)
