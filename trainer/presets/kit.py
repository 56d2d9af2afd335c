"""A preset: a job to start from, with what to look at."""

from __future__ import annotations

from dataclasses import dataclass

from trainer.spec import (
    CollectivesSpec,
    DataSplit,
    Gpt,
    GridSpec,
    JobSpec,
    LinksSpec,
    Pace,
    PlacementSpec,
    ScheduleSpec,
    SplitsSpec,
)

WATCHABLE = Pace(kind="paced", forward_ms=20.0, backward_ms=40.0)
UNHURRIED = Pace(kind="paced", forward_ms=40.0, backward_ms=80.0)  # ranks talk inside an action: on two cores that takes time
OWN = CollectivesSpec(all_reduce="auto", all_gather="auto", reduce_scatter="auto", all_to_all="auto")
TOGETHER = PlacementSpec(gpus_per_server=4)
ONE_EACH = PlacementSpec(gpus_per_server=1, servers_per_rack=4)
# 274 KB of gradients in a step, as if they were 13.7 MB: by a ring over InfiniBand at a thousandth of its speed 417 ms.
LARGER = 50.0
TOKENS_SLOW_DOWN = 500.0  # of NVLink: an AllToAll takes some milliseconds, and eight of them are in a forward of 40 ms


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


def copies(title: str, placement: PlacementSpec, all_reduce: str = "auto", mode: str = "ddp") -> JobSpec:
    """Four copies over modelled links, which average once a step."""
    return JobSpec(
        name=title, model=Gpt(layers=4), grid=GridSpec(dp=4), schedule=ScheduleSpec(name="gpipe", micro_batches=1),
        splits=SplitsSpec(data=DataSplit.model_validate({"mode": mode})), pace=WATCHABLE, batch=16, steps=20,
        collectives=OWN.model_copy(update={"all_reduce": all_reduce}),
        links=LinksSpec(kind="modelled", size_factor=LARGER), placement=placement,
    )


def over_nvlink(spec: JobSpec, slow_down: float = 100.0) -> JobSpec:
    """A message takes half a millisecond, at a hundredth of the speed within a server, and what it has besides."""
    return spec.model_copy(update={
        "collectives": OWN, "links": LinksSpec(kind="modelled", slow_down=slow_down, size_factor=20.0)})


def inside_a_stage(title: str, grid: GridSpec, splits: SplitsSpec | None = None, context: int = 32,
                   model: Gpt | None = None) -> JobSpec:
    return JobSpec(name=title, model=model or Gpt(layers=4, context=context), grid=grid, splits=splits or SplitsSpec(),
                   schedule=ScheduleSpec(name="1f1b", micro_batches=4), pace=UNHURRIED, batch=16 * grid.copies, steps=40)
