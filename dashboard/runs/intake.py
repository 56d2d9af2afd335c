"""From what a person gives (a form, a file, a preset with changes) to a job that this server can run."""

from __future__ import annotations

import copy
import json
import shlex
from functools import lru_cache
from typing import Any

from django.conf import settings

from trainer.complaints import FieldError, SpecError
from trainer.presets import PRESETS, Preset, preset
from trainer.spec import JobSpec, parse


def checked(given: str | bytes | dict[str, Any]) -> JobSpec:
    """A valid JobSpec within this host's limits, or a SpecError."""
    spec = parse(given)
    complaints = beyond_host(spec)
    if complaints:
        raise SpecError(complaints)
    return spec


def beyond_host(spec: JobSpec) -> list[FieldError]:
    """What a JobSpec allows and this host does not."""
    found = []
    most = settings.CONF.most_ranks
    if spec.ranks > most:
        axis, size = max(spec.grid.model_dump().items(), key=lambda item: item[1])
        other = spec.ranks // size
        fit = f"{most // other} or fewer here would do" if other <= most else f"at most {most} in all would do"
        found.append(FieldError(f"grid.{axis}", size,
                                f"the grid makes {spec.ranks} ranks and this host runs at most {most} "
                                f"(LOCKSTEP_MOST_RANKS); {fit}"))
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in spec.name):
        found.append(FieldError("name", spec.name, "a name of one line without control characters would do"))
    return found


def from_preset(key: Any, changes: Any = None) -> JobSpec:
    """Preset `key` with `changes`, a mapping of dotted paths such as `grid.pp` to values."""
    chosen = preset(key) if isinstance(key, str) else None
    if chosen is None:
        raise SpecError([FieldError("preset", key, f"there is no such preset; {', '.join(PRESETS)} would do")])
    if not isinstance(changes or {}, dict):
        raise SpecError([FieldError("set", changes, 'an object of changes would do, such as {"grid.pp": 2}')])
    return checked(with_changes(chosen.spec.model_dump(), changes or {}))


def with_changes(job: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`job` with each dotted path set to its value; another kind of model starts from its defaults."""
    changed = copy.deepcopy(job)
    kind, model = changes.get("model.name"), changed.get("model")
    if kind is not None and not (isinstance(model, dict) and model.get("name") == kind):
        changed["model"] = {"name": kind}
    for path, value in changes.items():
        *parents, last = path.split(".")
        at = changed
        for parent in parents:
            at = at.setdefault(parent, {})
            if not isinstance(at, dict):
                raise SpecError([FieldError(path, value, "there is no such field; check its spelling")])
        at[last] = value
    return changed


def command_line(spec: JobSpec) -> str:
    """The command that launches the same job."""
    nearest, changes = _nearest(spec)
    words = ["manage.py", "launch", nearest.key]
    for path, value in changes.items():
        words += ["--set", f"{path}={_written(value)}"]
    return shlex.join(words)


def api_call(spec: JobSpec, address: str) -> str:
    """The call of the API, at the `address` of its runs, that launches the same job; a token is in the caller's environment."""
    nearest, changes = _nearest(spec)
    body = {"preset": nearest.key} | ({"set": changes} if changes else {})
    return (f'curl {shlex.quote(address)} -H "Authorization: Bearer $LOCKSTEP_TOKEN" -H "Content-Type: application/json" '
            f"-d {shlex.quote(json.dumps(body, ensure_ascii=False))}")


def _nearest(spec: JobSpec) -> tuple[Preset, dict[str, Any]]:
    """The preset that is nearest, and what differs from it."""
    candidates = [one for one in PRESETS.values() if one.spec.model.name == spec.model.name]
    return min(((one, _differences(one, spec)) for one in candidates), key=lambda pair: len(pair[1]))


def same_preset(spec: JobSpec) -> Preset | None:
    """The preset that `spec` is, whatever its name."""
    return next((one for one in PRESETS.values() if not set(_differences(one, spec)) - {"name"}), None)


def _differences(base: Preset, spec: JobSpec) -> dict[str, Any]:
    """Dotted paths at which `spec` differs from `base`, with its values there."""
    old = _flat(base.spec)
    return {path: value for path, value in _flat(spec).items() if path not in old or old[path] != value}


@lru_cache(maxsize=2 * len(PRESETS))  # every keystroke in the form is held against all presets
def _flat(spec: JobSpec) -> dict[str, Any]:
    return flat(spec.model_dump())


def flat(job: dict[str, Any]) -> dict[str, Any]:
    """Dotted paths to values: {"grid": {"pp": 4}} becomes {"grid.pp": 4}."""
    found: dict[str, Any] = {}
    for key, value in job.items():
        if isinstance(value, dict):
            found |= {f"{key}.{path}": inner for path, inner in flat(value).items()}
        else:
            found[key] = value
    return found


def as_value(text: str) -> Any:
    """What a change of a field was written as: JSON, or else a string."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _written(value: Any) -> str:
    """As `as_value` reads it."""
    if not isinstance(value, str):
        return json.dumps(value)
    try:
        json.loads(value)
    except ValueError:
        return value
    return json.dumps(value)  # a name such as "12" must not become a number
