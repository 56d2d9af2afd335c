"""What a schedule would take: every action's start and end, from durations alone, without running it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trainer.schedules.actions import Action, Do, Schedule, homes, needs

HandOff = Callable[[int, int], float]
Longer = Callable[[Action, float], float]


class Meeting(NamedTuple):
    """What so many `ranks` do together, each in an action of its own. It takes `lasts` from when the last of these actions is
    over, or if it goes on `beside` them from when the last one begins; before it is over none of them is."""

    key: Hashable
    ranks: int
    lasts: float
    beside: bool


Meets = Callable[[int, Action], Meeting | None]


@dataclass(frozen=True)
class Timed:
    rank: int
    action: Action
    start: float
    end: float


@dataclass(frozen=True)
class Simulation:
    """Times in the unit of the given durations, from 0. `peak_held[rank]` counts micro-batches whose
    activations lay on the rank at once."""

    timed: list[Timed]
    peak_held: list[int]

    @property
    def makespan(self) -> float:
        return max(item.end for item in self.timed)

    @property
    def busy(self) -> float:
        return sum(item.end - item.start for item in self.timed)

    @property
    def bubble_share(self) -> float:
        """Idle share of the whole: of all ranks, from the first start to the last end."""
        return 1 - self.busy / (len(self.peak_held) * self.makespan)

    @property
    def idle_inside(self) -> float:
        """The longest that any rank idles between its own first start and its own last end."""
        idle = []
        for rank in range(len(self.peak_held)):
            own = [item for item in self.timed if item.rank == rank]
            idle.append(max(item.end for item in own) - own[0].start - sum(item.end - item.start for item in own))
        return max(idle)


class Stuck(ValueError):
    """Every rank waits for another."""


def simulate(
    schedule: Schedule, durations: Mapping[Do, float], hand_off: float | HandOff = 0.0, side_by_side: bool = False,
    together: float | None = None, shares: Sequence[float] = (), slowness: Sequence[float] = (),
    longer: Longer | None = None, meets: Meets | None = None, begin: Sequence[float] = (),
) -> Simulation:
    """Run `schedule` by the clock.

    Every stage takes `durations`, or with `shares` its share of them, and with `slowness` its rank's multiple of that;
    `longer` says of an action and what it would take so what it takes indeed. `hand_off` passes between the end of an action
    and the earliest start of one that needs it on another rank; a function gets both ranks. With `side_by_side` a rank's
    forwards and backwards are two queues that do not wait for each other, as on a device that has room for both. `together`
    is what an action that is meant to run with the next one takes together with it (DualPipe's F&B); without it they take turns.
    `meets` says of a rank's action in which meeting it is. Ranks `begin` at 0, or at moments of their own from there on.
    """
    queues = [(rank, queue) for rank, actions in enumerate(schedule) for queue in _queues(actions, side_by_side)]
    stages = 1 + max(action.stage for actions in schedule for action in actions)
    home = homes(schedule)
    position, free = [0] * len(queues), [begin[rank] if begin else 0.0 for rank, _ in queues]
    came: dict[Hashable, dict[int, tuple[float, float]]] = {}  # to each meeting: by queue, start and end of its action alone
    passes: HandOff = hand_off if callable(hand_off) else lambda one, other: hand_off
    ended: dict[tuple[Do, int, int], float] = {}
    timed: list[Timed] = []
    moved = True
    while moved:
        moved = False
        for number, (rank, queue) in enumerate(queues):
            while position[number] < len(queue):
                first = queue[position[number]]
                pair = together is not None and first.with_next
                group = queue[position[number]: position[number] + (2 if pair else 1)]
                ready = [_ready(action, rank, stages, home, ended, passes) for action in group]
                if None in ready:
                    break
                start = max(free[number], *(moment for moment in ready if moment is not None))
                share = (shares[first.stage] if shares else 1) * (slowness[rank] if slowness else 1)
                lasts = together / 2 if together is not None and pair else durations[first.do] * share
                lasts = longer(first, lasts) if longer else lasts
                if meets and (meeting := meets(rank, first)):
                    come = came.setdefault(meeting.key, {})
                    come[number] = start, start + lasts
                    if len(come) < meeting.ranks:
                        break
                    lasts = _over(meeting, come, number) - start
                for action in group:
                    timed.append(Timed(rank, action, start, start := start + lasts))
                free[number] = start
                for action in group:
                    ended[action.do, action.stage, action.micro_batch] = start
                    if action.do is Do.BACKWARD_INPUT:
                        ended[Do.BACKWARD, action.stage, action.micro_batch] = start
                position[number] += len(group)
                moved = True
    waiting = [f"rank {rank}, row {position[n]}, {queue[position[n]]} of stage {queue[position[n]].stage}"
               for n, (rank, queue) in enumerate(queues) if position[n] < len(queue)]
    if waiting:
        raise Stuck("each waits for another: " + "; ".join(waiting))
    timed.sort(key=lambda item: (item.start, item.rank))
    return Simulation(timed, [_peak_held(timed, rank) for rank in range(len(schedule))])


def _over(meeting: Meeting, come: Mapping[int, tuple[float, float]], number: int) -> float:
    """When the action of a queue is over, with what it does together with the others that have come."""
    starts, ends = zip(*come.values(), strict=True)
    return max(come[number][1], max(starts) + meeting.lasts) if meeting.beside else max(ends) + meeting.lasts


def _queues(actions: list[Action], side_by_side: bool) -> list[list[Action]]:
    if not side_by_side:
        return [actions]
    return [[a for a in actions if a.do is Do.FORWARD], [a for a in actions if a.do is not Do.FORWARD]]


def _ready(
    action: Action, rank: int, stages: int, home: dict[tuple[int, int], int], ended: dict[tuple[Do, int, int], float],
    passes: HandOff,
) -> float | None:
    """When what `action` needs is there; None as long as it is not done."""
    need = needs(action, stages)
    if need is None:
        return 0.0
    do, stage = need
    end = ended.get((do, stage, action.micro_batch))
    if end is None:
        return None
    source = home[stage, action.micro_batch]
    return end if source == rank else end + passes(source, rank)


def _peak_held(timed: list[Timed], rank: int) -> int:
    """A forward's activations are held from its start until the last of its backward is over."""
    changes = []
    for item in timed:
        if item.rank == rank and item.action.do is Do.FORWARD:
            changes.append((item.start, 1))
        elif item.rank == rank and item.action.do in (Do.BACKWARD, Do.BACKWARD_WEIGHT):
            changes.append((item.end, -1))
    held = peak = 0
    for _, change in sorted(changes):  # at the same moment the release comes first
        held += change
        peak = max(peak, held)
    return peak
