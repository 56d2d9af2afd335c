"""Runs side by side: what differs in their jobs, then their figures with differences and what those are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.runs.intake import flat
from dashboard.runs.models import Run
from dashboard.runs.significance import SIGNIFICANT, welch_p
from dashboard.runs.words import duration, figure, percent
from trainer.complaints import FieldError, SpecError
from trainer.trace.figures import RUN_DEFINITIONS, Definition

LEAST, MOST = 2, 4
LATEST_STEPS = 2000  # of each run are tested
_RUN_FIGURES = ("step_seconds_theory", "bubble_share_theory", "bubble_share_ideal", "loss_first", "loss_last", "steps_figured",
                "dropped_spans", "clock_uncertainty_ns")
# Medians over steps, as the runs' pages show them, and what of a step each is the median of: that is tested.
_OVER_STEPS = {"step_seconds": "period_ns", "bubble_share": "bubble_share", "exposed_share": "exposed_share",
               "samples_per_second": "samples_per_second"}


@dataclass(frozen=True)
class Difference:
    """A field of the JobSpec in which the runs differ; None where a run's model has no such field."""

    path: str
    values: list[Any]


@dataclass(frozen=True)
class Line:
    """One figure of all runs. Differences are against the first run; lists are in the runs' order."""

    key: str
    definition: Definition
    values: list[float | None]
    changes: list[float | None]  # as shares of the first run's value
    p: list[float | None]  # of Welch's test over steps; None where a figure has no steps, or too few

    @property
    def cells(self) -> list[tuple[str, str, str]]:
        """Value, change, and what the change is worth, in words."""
        return [
            (shown(self.definition.unit, value), "" if at == 0 else _change(change), "" if at == 0 else _worth(p))
            for at, (value, change, p) in enumerate(zip(self.values, self.changes, self.p, strict=True))
        ]

    def as_dict(self) -> dict[str, Any]:
        return {"key": self.key, "title": self.definition.title, "unit": self.definition.unit, "values": self.values,
                "changes": self.changes, "p": self.p}


@dataclass(frozen=True)
class Comparison:
    runs: list[Run]
    differences: list[Difference]
    lines: list[Line]

    def as_dict(self) -> dict[str, Any]:
        return {
            "runs": [{"id": run.pk, "name": run.name, "state": run.state} for run in self.runs],
            "differences": [{"path": one.path, "values": one.values} for one in self.differences],
            "figures": [line.as_dict() for line in self.lines],
            "test": f"Welch's t-test over complete steps without the first, at most the latest {LATEST_STEPS}; "
                    f"significant below {SIGNIFICANT}",
        }


def wanted(ids: Sequence[str]) -> list[str]:
    """Different ids, two to four, or a SpecError."""
    found = list(dict.fromkeys(one for one in ids if one))
    if not LEAST <= len(found) <= MOST:
        raise SpecError([FieldError("run", len(found), f"{LEAST} to {MOST} different runs would do")])
    return found


def compare(runs: list[Run], step_rows: list[list[dict[str, Any]]]) -> Comparison:
    """`step_rows`: of each run the rows of its steps, with the keys of STEP_DEFINITIONS."""
    return Comparison(runs, _differences(runs), [
        *(_line(key, RUN_DEFINITIONS[key], [run.figures.get(key) for run in runs], _tested(step_rows, of_step))
          for key, of_step in _OVER_STEPS.items()),
        *(_line(key, RUN_DEFINITIONS[key], [run.figures.get(key) for run in runs]) for key in _RUN_FIGURES),
    ])


def _differences(runs: list[Run]) -> list[Difference]:
    specs = [flat(run.spec.model_dump(mode="json")) for run in runs]  # in the JobSpec's order, which Postgres does not keep
    paths = dict.fromkeys(path for spec in specs for path in spec if path != "name")
    rows = [Difference(path, [spec.get(path) for spec in specs]) for path in paths]
    return [row for row in rows if any(value != row.values[0] for value in row.values)]


def _tested(step_rows: list[list[dict[str, Any]]], key: str) -> list[float | None]:
    """What the difference of each run to the first one is worth. The first step is left out: it also warms up."""
    samples = [
        [row[key] for row in rows if row["step"] > 0 and row.get("complete") and row.get(key) is not None][-LATEST_STEPS:]
        for rows in step_rows
    ]
    return [None, *(welch_p(samples[0], sample) for sample in samples[1:])]


def _line(key: str, definition: Definition, values: list[float | None], p: list[float | None] | None = None) -> Line:
    first = values[0]
    changes = [None if value is None or not first else value / first - 1 for value in values]
    return Line(key, definition, values, changes, p or [None] * len(values))


def _change(share: float | None) -> str:
    if share is None:
        return ""
    return "the same" if share == 0 else f"{share:+.1%}".replace("%", " %").replace("-", "−")


def _worth(p: float | None) -> str:
    if p is None:
        return ""
    chance = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    return f"differs, {chance}" if p < SIGNIFICANT else f"within the scatter, {chance}"


def shown(unit: str, value: float | None) -> str:
    if value is None:
        return "–"
    match unit:
        case "share":
            return percent(value)
        case "ns":
            return duration(value / 1e9) if value >= 1e6 else f"{value / 1000:.1f} µs"
        case "s":
            return duration(value)
        case "1/s":
            return f"{figure(value)} /s"
        case "count":
            return f"{value:,.0f}"
        case _:
            return figure(value)
