"""A drawing of one step of a job before it runs, made by the schedules' simulator."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from trainer.emulate.durations import durations_ms
from trainer.grid import Grid
from trainer.schedules import schedule_of
from trainer.schedules.actions import Do
from trainer.schedules.cuts import shares_of
from trainer.schedules.simulate import Timed, simulate
from trainer.spec import JobSpec

MOST_LANES = 16  # ranks drawn
MOST_CHUNKS = 768  # stages × micro-batches: beyond it bars are too thin to see, and simulating takes a while
WIDTH = 640.0
LANE = 24.0
BAR = 19.0
_LETTER_WIDTH = 6.5
_LABEL_MARGIN = 4.0  # narrower bars have no room for "F0"

KINDS = {
    Do.FORWARD: "forward",
    Do.BACKWARD: "backward",
    Do.BACKWARD_INPUT: "backward-input",
    Do.BACKWARD_WEIGHT: "backward-weight",
}
WORDS = {
    "forward": "forward",
    "backward": "backward",
    "backward-input": "gradient of the input",
    "backward-weight": "gradient of the weights",
}


@dataclass(frozen=True)
class Bar:
    """In units of the drawing."""

    kind: str
    x: float
    y: float
    width: float
    label: str

    @property
    def middle(self) -> float:
        return round(self.x + self.width / 2, 1)

    @property
    def baseline(self) -> float:
        return self.y + BAR - 6


@dataclass(frozen=True)
class Sketch:
    title: str
    bars: list[Bar]
    lanes: list[float]  # the upper edge of each
    hidden_lanes: int
    width: float = WIDTH
    bar_height: float = BAR

    @property
    def height(self) -> float:
        return LANE * len(self.lanes) - (LANE - BAR)

    # Bars come by the hundred with every keystroke in the launch form: as template variables they took most of its time.

    @property
    def shapes(self) -> SafeString:
        return format_html_join("", '<rect class="kind-{}" x="{}" y="{}" width="{}" height="{}" rx="2" />', (
            (bar.kind, bar.x, bar.y, bar.width, self.bar_height) for bar in self.bars))

    @property
    def labels(self) -> SafeString:
        return format_html_join("", '<text x="{}" y="{}">{}</text>', (
            (bar.middle, bar.baseline, bar.label) for bar in self.bars if bar.label))

    @property
    def legend(self) -> list[tuple[str, str, str]]:
        """Kind, letter and word of what is drawn."""
        used = {bar.kind for bar in self.bars}
        return [(kind, do.value, WORDS[kind]) for do, kind in KINDS.items() if kind in used]


def sketch(spec: JobSpec) -> Sketch | None:
    """None for a job of which a small drawing would show nothing."""
    places = spec.grid.pp
    if places * spec.schedule.chunks * spec.schedule.micro_batches > MOST_CHUNKS:
        return None
    step = simulate(schedule_of(spec), durations_ms(spec), shares=shares_of(spec))
    scale = WIDTH / step.makespan
    lanes = min(spec.ranks, MOST_LANES)
    grid = Grid.of(spec.grid)
    timed_at: list[list[Timed]] = [[] for _ in range(places)]
    for timed in step.timed:
        timed_at[timed.rank].append(timed)
    return Sketch(
        title=f"One step of {spec.ranks} rank{'' if spec.ranks == 1 else 's'}, as the schedule orders it",
        bars=[_bar(timed, lane, scale) for lane in range(lanes) for timed in timed_at[grid.address(lane).pp]],
        lanes=[lane * LANE for lane in range(lanes)],
        hidden_lanes=spec.ranks - lanes,
    )


def _bar(timed: Timed, lane: int, scale: float) -> Bar:
    width = max((timed.end - timed.start) * scale - 1, 0.5)
    label = str(timed.action)
    if width < len(label) * _LETTER_WIDTH + _LABEL_MARGIN:
        label = ""
    return Bar(KINDS[timed.action.do], round(timed.start * scale, 1), lane * LANE, round(width, 1), label)
