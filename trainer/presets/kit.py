"""A preset: a job to start from, with what to look at."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.spec import Gpt, GridSpec, JobSpec, Pace, ScheduleSpec, SplitsSpec

WATCHABLE = Pace(kind="paced", forward_ms=20.0, backward_ms=40.0)
UNHURRIED = Pace(kind="paced", forward_ms=40.0, backward_ms=80.0)  # ranks talk inside an action: on two cores that takes time


@dataclass(frozen=True)
class Preset:
    key: str
    title: str
    shows: str
    spec: JobSpec


def pipeline(title: str, schedule: str, chunks: int = 1, csv: str = "", layers: tuple[int, ...] = ()) -> JobSpec:
    order = ScheduleSpec.model_validate(
        {"name": schedule, "micro_batches": 8, "chunks": chunks, "csv": csv, "layers": layers})
    return JobSpec(name=title, model=Gpt(layers=sum(layers) or 4 * chunks), grid=GridSpec(pp=4), schedule=order, pace=WATCHABLE,
                   batch=32, steps=30)


def inside_a_stage(title: str, grid: GridSpec, splits: SplitsSpec | None = None, context: int = 32,
                   model: Gpt | None = None) -> JobSpec:
    return JobSpec(name=title, model=model or Gpt(layers=4, context=context), grid=grid, splits=splits or SplitsSpec(),
                   schedule=ScheduleSpec(name="1f1b", micro_batches=4), pace=UNHURRIED, batch=16 * grid.copies, steps=40)
