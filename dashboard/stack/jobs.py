"""From what was typed behind `manage.py launch` to a JobSpec."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from trainer import spec as job
from trainer.complaints import FieldError, SpecError
from trainer.presets import PRESETS, preset


def read_spec(what: str, changes: list[str], most_ranks: int) -> job.JobSpec:
    """The preset or file `what` (`-` for standard input), changed by `a.b=c`. Raises SpecError."""
    given = _load(what)
    for change in changes:
        _apply(given, change)
    spec = job.parse(given)
    if spec.ranks > most_ranks:
        raise SpecError([FieldError(
            "grid", spec.grid.model_dump(),
            f"it makes {spec.ranks} ranks; this host starts at most {most_ranks} (LOCKSTEP_MOST_RANKS). A smaller grid would do",
        )])
    return spec


def _load(what: str) -> dict[str, Any]:
    if what in PRESETS:
        return PRESETS[what].spec.model_dump()
    if what == "-":
        return job.parse(sys.stdin.read()).model_dump()
    path = Path(what)
    if path.is_file():
        return _object_in(path)
    if path.suffix or len(path.parts) > 1:
        raise SpecError([FieldError("file", what, "there is no such file")])
    return preset(what).spec.model_dump()  # says which presets there are


def _object_in(path: Path) -> dict[str, Any]:
    """The JSON object of a file; not checked yet, since changes to it may follow."""
    try:
        given = json.loads(path.read_text())
    except (ValueError, OSError) as error:
        raise SpecError([FieldError("", None, f"{path} is not JSON: {error}")]) from None
    if not isinstance(given, dict):
        raise SpecError([FieldError("", given, f'{path} holds no JSON object; {{"steps": 30}} would do')])
    return given


def _apply(given: dict[str, Any], change: str) -> None:
    path, equals, text = change.partition("=")
    if not equals or not path:
        raise SpecError([FieldError("--set", change, "a field and its value would do, as in --set grid.pp=2")])
    *parents, last = path.split(".")
    place = given
    for name in parents:
        place = place.setdefault(name, {})
        if not isinstance(place, dict):
            raise SpecError([FieldError(path, change, f"{name} has no fields of its own")])
    try:
        place[last] = json.loads(text)
    except ValueError:
        place[last] = text
