"""What a job will be, before it runs: its ranks, its theory, how long a step takes, and what to mind."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from dashboard.runs import fleet
from dashboard.runs.intake import command_line
from dashboard.runs.sketch import Sketch, sketch
from dashboard.runs.words import grid_words, size
from trainer.collectives.sent import sent_bytes
from trainer.emulate.devices import card_bytes
from trainer.grid import Grid
from trainer.memory import RankMemory, predicted
from trainer.placement import slow_axes
from trainer.schedules import stages_of
from trainer.schedules.theory import bubble_formula, bubble_share
from trainer.spec import JobSpec
from trainer.step_time import leaves_out_mirrors, step_ms
from trainer.talk_time import left_out

MOST_CELLS = 128  # ranks drawn; the rest is a number


@dataclass(frozen=True)
class Cell:
    """A rank's place in the grid, in the words that the timeline uses. `pipeline` says which pipeline of several it is in."""

    rank: int
    stages: list[int]
    copy: int
    experts: int
    part: int
    slice: int
    pipeline: str

    @property
    def title(self) -> str:
        stages = ", ".join(map(str, self.stages))
        return f"rank {self.rank}: stage{'' if len(self.stages) == 1 else 's'} {stages}, {self.pipeline}"

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "pipeline"}


@dataclass(frozen=True)
class PlaceMemory:
    """What every rank of one place in the pipeline has in memory at most, by formulas. `share` is of the largest total."""

    stages: list[int]
    held: RankMemory
    share: float

    def as_dict(self) -> dict[str, Any]:
        return {"stages": self.stages, **asdict(self.held), "total": self.held.total}


@dataclass(frozen=True)
class Plan:
    spec: JobSpec
    ranks: int
    rows: list[list[Cell]]  # a pipeline each: its ranks, by stage
    ranks_not_drawn: int
    bubble_share: float
    bubble_formula: str
    step_ms: float | None  # None where the pace is real: it is for the run to tell
    sketch: Sketch | None
    memory: list[PlaceMemory]  # by place in the pipeline
    traffic: dict[str, int]  # bytes that the busiest rank sends in a step, by axis
    waits_for_mirrors: bool  # which is not in `step_ms`
    links_left_out: list[str]  # axes whose modelled links are not in `step_ms`
    command: str
    warnings: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        return grid_words(self.spec.model_dump())

    @property
    def step_seconds(self) -> float | None:
        return None if self.step_ms is None else self.step_ms / 1000

    @property
    def run_seconds(self) -> float | None:
        return None if self.step_ms is None else self.step_ms * self.spec.steps / 1000

    def as_dict(self) -> dict[str, Any]:
        return {
            "ranks": self.ranks,
            "grid": [[cell.as_dict() for cell in row] for row in self.rows],
            "theory": {"bubble_share": self.bubble_share, "formula": self.bubble_formula},
            "step_ms": self.step_ms,
            "memory": [place.as_dict() for place in self.memory],
            "traffic": self.traffic,
            "waits_for_mirrors": self.waits_for_mirrors,
            "links_left_out": self.links_left_out,
            "command": self.command,
            "warnings": self.warnings,
        }


def plan(spec: JobSpec) -> Plan:
    rows = _rows(spec)
    share, memory = bubble_share(spec), _memory(spec)
    return Plan(
        spec=spec,
        ranks=spec.ranks,
        rows=rows,
        ranks_not_drawn=spec.ranks - sum(map(len, rows)),
        bubble_share=share,
        bubble_formula=bubble_formula(spec),
        step_ms=step_ms(spec),
        sketch=sketch(spec),
        memory=memory,
        traffic=sent_bytes(spec),
        waits_for_mirrors=leaves_out_mirrors(spec),
        links_left_out=left_out(spec),
        command=command_line(spec),
        warnings=_warnings(spec) + slow_axes(spec) + _beyond_card(memory, card_bytes(spec)),
    )


def _memory(spec: JobSpec) -> list[PlaceMemory]:
    """Of so many places as are drawn."""
    ranks = predicted(spec)
    most = max((held.total for held in ranks), default=0)
    drawn = zip(stages_of(spec)[:MOST_CELLS], ranks[:MOST_CELLS], strict=False)
    return [PlaceMemory(stages, held, held.total / most) for stages, held in drawn]


def _beyond_card(memory: list[PlaceMemory], card: float | None) -> list[str]:
    """What the card that ranks stand for has no room for: the emulation runs all the same."""
    most = max((place.held.total for place in memory), default=0)
    if card is None or most <= card:
        return []
    return [f"A rank will have up to {size(most)} in memory, and the card has {size(card)}: there it would not fit. Activation "
            "checkpointing, smaller micro-batches or a schedule that holds fewer would lower it."]


def _rows(spec: JobSpec) -> list[list[Cell]]:
    """Ranks that differ by their place in the pipeline alone make a row."""
    grid, stages = Grid.of(spec.grid), stages_of(spec)
    by_pipeline: dict[str, list[Cell]] = {}
    for rank in range(min(spec.ranks, MOST_CELLS)):
        address = grid.address(rank)
        places = {"copy": address.dp, "experts": address.ep, "part": address.cp, "slice": address.tp}
        shared = {"copy": spec.grid.dp, "experts": spec.grid.ep, "part": spec.grid.cp, "slice": spec.grid.tp}
        pipeline = ", ".join(f"{word} {places[word]}" for word, size in shared.items() if size > 1) or "copy 0"
        cell = Cell(rank, stages[address.pp], **places, pipeline=pipeline)
        by_pipeline.setdefault(pipeline, []).append(cell)
    return list(by_pipeline.values())


def _warnings(spec: JobSpec) -> list[str]:
    try:
        workers = fleet.workers()
    except fleet.FleetUnknown:
        return ["Redis does not answer, so nothing can start yet. The run waits in the queue."]
    if not workers:
        return ["No worker is there. The run waits in the queue until one comes: `manage.py up` starts one."]
    able = [worker for worker in workers if spec.device in worker.devices]
    if not able:
        return [f"No worker here has a {spec.device} device. The run waits in the queue until one does."]
    most = max(worker.ranks for worker in able)
    if spec.ranks > most:
        return [f"The largest worker has {most} rank slots and this job needs {spec.ranks}. The run waits until one has enough."]
    return []
