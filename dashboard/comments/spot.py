"""The spot in a run that a comment is about, as pages and programs send it."""

from __future__ import annotations

import math
from typing import Any

from dashboard.comments.models import About
from dashboard.runs.models import Run
from trainer.complaints import FieldError, SpecError, choices
from trainer.trace.kinds import Lane

FIELDS = {
    About.RUN: (), About.RANGE: ("from_ns", "to_ns"), About.SPAN: ("from_ns", "to_ns", "rank", "lane"), About.RANK: ("rank",),
}
LONGEST_NS = 1e18  # thirty years


def checked(run: Run, given: dict[str, Any]) -> dict[str, Any]:
    """Fields of a Comment from `{"kind": …}` with those of FIELDS. SpecError says what would do instead."""
    kind = given.get("kind")
    if kind not in About.values:
        raise SpecError([FieldError("about.kind", kind, f"{choices(About.values)} would do")])
    wanted = FIELDS[About(kind)]
    errors = [error for name in wanted for error in _complaints(run, name, given.get(name))]
    if not errors and "from_ns" in wanted and given["to_ns"] < given["from_ns"]:
        errors.append(FieldError("about.to_ns", given["to_ns"], "a time at or after from_ns would do"))
    if errors:
        raise SpecError(errors)
    return {"about": kind, **{name: given[name] for name in wanted}}


def _complaints(run: Run, name: str, value: Any) -> list[FieldError]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if name in ("from_ns", "to_ns"):
        fits, would_do = is_number and abs(value) <= LONGEST_NS, "a time in ns on the run's clock would do"
    else:
        count = run.spec.ranks if name == "rank" else len(Lane)
        fits, would_do = is_number and value == int(value) and 0 <= value < count, f"0 to {count - 1} would do"
    return [] if fits else [FieldError(f"about.{name}", value, would_do)]
