"""The list's search: words, and conditions such as `state:failed,lost bubble>30% -tag:old "a phrase"`.

One language for the page's box, its address, saved views, the API and the command line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone

from dashboard.runs.models import Run, RunTag, State
from trainer.complaints import FieldError, choices
from trainer.spec import ScheduleSpec

LONGEST = 500  # letters
_TERM = re.compile(
    r'(?P<no>-?)(?:(?P<field>[A-Za-z]+)\s*(?P<sign><=|>=|[<>=:])\s*)?'
    r'(?:"(?P<phrase>[^"]*)"?|(?P<value>[^\s"]+(?:\s*%)?))'
)
_NUMBER = re.compile(r"([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([a-zA-Zµ%]*)\Z")
_LARGEST = 1e15  # of a number that somebody looks for; integers of databases end a little above
_LOOKUPS = {":": "exact", "=": "exact", "<": "lt", ">": "gt", "<=": "lte", ">=": "gte"}
_OPPOSITE = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", ":": ":", "=": "="}
_SCHEDULES = ScheduleSpec.model_fields["name"].annotation.__args__  # type: ignore[union-attr]


@dataclass(frozen=True)
class Query:
    text: str
    condition: Q
    errors: list[FieldError] = field(default_factory=list)
    states: frozenset[str] = frozenset()  # of pinned, archived, deleted, mine: which are asked for


class _Refused(Exception):
    """What would do."""


def parse(text: str, user: Any = None) -> Query:
    """Conditions that cannot be understood are left out and complained of; the rest holds."""
    text = " ".join(text.replace("\0", " ").split())  # PostgreSQL's text has no such letter
    if len(text) > LONGEST:
        return Query(text[:LONGEST], Q(), [FieldError("q", f"{len(text)} letters", f"at most {LONGEST} letters would do")])
    condition, errors, asked = Q(), [], set()
    for term in _TERM.finditer(text):
        name, sign = (term["field"] or "").lower(), term["sign"] or ":"
        value = term["phrase"] if term["value"] is None else term["value"]
        try:
            one = _condition(name, sign, value, user) if name else _words(value)
        except _Refused as why:
            errors.append(FieldError(name, value, str(why)))
            continue
        if name == "is" and not term["no"]:
            asked.add(value.lower())
        condition &= ~one if term["no"] else one
    return Query(text, condition, errors, frozenset(asked))


def _words(value: str) -> Q:
    """Rows with notes alone are read for their notes; the rest is answered by indexes."""
    tagged = RunTag.objects.filter(name__icontains=value).values("run")
    noted = Run.objects.filter(note_letters__gt=0, note__icontains=value).order_by().values("pk")
    return Q(name__icontains=value) | Q(pk__startswith=value) | Q(pk__in=noted) | Q(pk__in=tagged)


def _condition(name: str, sign: str, value: str, user: Any) -> Q:
    if name not in FIELDS:
        raise _Refused(f"there is no such field; {choices(FIELDS)} would do, and quotes around what is meant as text")
    if name == "is":
        return _is(value, user)
    return FIELDS[name].condition(sign, value)


@dataclass(frozen=True)
class Field:
    help: str
    condition: Callable[[str, str], Q]


def _one_of(column: str, known: tuple[str, ...] = (), **more: Any) -> Callable[[str, str], Q]:
    def condition(sign: str, value: str) -> Q:
        if sign not in ":=":
            raise _Refused(f"{sign} is for numbers; a colon would do here")
        wanted = [one.strip().lower() for one in value.split(",") if one.strip()]
        if not wanted or (known and set(wanted) - set(known)):
            raise _Refused(f"{choices(known)} would do, or several with commas" if known else "a name would do")
        found = Q()
        for one in wanted:
            found |= Q(**{column: one})
        return found & Q(**more)

    return condition


def _tag(sign: str, value: str) -> Q:
    return Q(pk__in=RunTag.objects.filter(_one_of("name")(sign, value)).values("run"))


def _number(column: str, units: dict[str, float], example: str) -> Callable[[str, str], Q]:
    def condition(sign: str, value: str) -> Q:
        given = _NUMBER.match(value)
        if given is None or given[2] not in units or float(given[1]) > _LARGEST:
            raise _Refused(f"{example} would do")
        known = Q(**{f"{column}__isnull": False})  # so that "not over" holds for what has no value yet
        return known & Q(**{f"{column}__{_LOOKUPS[sign]}": float(given[1]) * units[given[2]]})

    return condition


def _share(sign: str, value: str) -> Q:
    found = _number("bubble", {"%": 0.01, "": 1.0}, "a share such as 30% or 0.3")(sign, value)
    if not value.endswith("%") and float(value) > 1:
        raise _Refused("a share such as 30% or 0.3 would do")
    return found


def _age(sign: str, value: str) -> Q:
    given = _NUMBER.match(value)
    units = {"h": 1.0, "d": 24.0, "w": 168.0}
    if given is None or given[2] not in units or sign in ":=" or float(given[1]) * units[given[2]] > 1e6:
        raise _Refused("an age such as age<7d would do, in h, d or w")
    moment = timezone.now() - timedelta(hours=float(given[1]) * units[given[2]])
    return Q(**{f"created_at__{_LOOKUPS[_OPPOSITE[sign]]}": moment})


def _is(value: str, user: Any) -> Q:
    match value.lower():
        case "pinned":
            return Q(pinned_at__isnull=False)
        case "archived":
            return Q(archived_at__isnull=False)
        case "deleted":
            return Q(deleted_at__isnull=False)
        case "mine":
            return Q(owner=user)
        case _:
            raise _Refused("pinned, archived, deleted or mine would do")


_AXES = {"dp": "copies", "pp": "stages", "cp": "context parts", "tp": "tensor slices", "ep": "expert parts"}

FIELDS: dict[str, Field] = {
    "state": Field("state:failed,lost", _one_of("state", tuple(State.values))),
    "model": Field("model:gpt", _one_of("model")),
    "schedule": Field("schedule:zb-v", _one_of("schedule", _SCHEDULES, pp__gt=1)),
    "owner": Field("owner:ada", _one_of("owner__username__iexact")),
    "team": Field("team:compilers", _one_of("team__name__iexact")),
    "tag": Field("tag:baseline", _tag),
    "device": Field("device:cuda", _one_of("device", ("cpu", "cuda"))),
    "is": Field("is:pinned, is:archived, is:deleted, is:mine", lambda sign, value: _is(value, None)),
    **{axis: Field(f"{axis}>=2 ({words})", _number(axis, {"": 1.0}, f"a number such as {axis}>=2"))
       for axis, words in _AXES.items()},
    "bubble": Field("bubble>30%", _share),
    "loss": Field("loss<2.5", _number("loss", {"": 1.0}, "a number such as loss<2.5")),
    "step": Field("step>200ms (step time)",
                  _number("step_seconds", {"s": 1.0, "ms": 1e-3}, "a time such as step>200ms or step<1s")),
    "steps": Field("steps>=100", _number("steps", {"": 1.0}, "a number such as steps>=100")),
    "age": Field("age<7d", _age),
}
